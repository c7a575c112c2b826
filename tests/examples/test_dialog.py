"""The example of dialog acts: what of a sentence is a value, what counts as an error, and run.sh in small."""

import math
import re
from collections import defaultdict
from pathlib import Path

import pytest
from example_modules import EXAMPLES, load
from sacrebleu.metrics.bleu import BLEU
from shell import Shell

FOLDER = EXAMPLES / "dialog"
acts, wording, scoring, prepare, rank, experts, dialog = load(
    FOLDER, *(f"dialog_{name}" for name in ("acts", "words", "scores", "prepare", "rank", "experts")), "dialog"
)
ACT = acts.parse_act("inform(name='red door cafe';area='hayes valley or soma';kidsallowed=yes;type=restaurant;near)")


# ---- acts ------------------------------------------------------------------------------------------------------------


def test_an_act_has_texts_special_values_and_what_is_asked() -> None:
    assert ACT.kind == "inform"
    assert ACT.texts == (("name", "red door cafe"), ("area", "hayes valley or soma"))
    assert dict(ACT.pairs)["kidsallowed"] == "yes" and dict(ACT.pairs)["near"] == "?"
    assert acts.parse_act("?select(food=dont_care;price range='')").pairs == (("food", "dontcare"), ("pricerange", "?"))
    assert acts.parse_act("goodbye()").pairs == ()


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "tokens"),
    [
        ("Red Door Cafe allows kids .", "red door cafe allows kid -s"),
        ("it doesn't , we're sorry", "it does not , we are sorry"),
        ("call (415) 282-8283 ;  it's open/cheap?yes", "call 4152828283 , it is open and cheap ? yes"),
        ("the inn's rooms: 22.5 euro, at 7th st", "the inn 's rooms 22.5 euro , at 7th street"),
        ("room 12 34 x", "room 1234 x"),
        ("the inn 's rooms", "the inn s rooms"),
    ],
)
def test_normal_words(raw: str, tokens: str) -> None:
    assert wording.normalise(raw) == tokens


def test_values_are_marked_once_in_any_order_and_read_back() -> None:
    marked = wording.mark("red door cafe is in soma and hayes valley , red door cafe", ACT)
    assert marked == "@name_red_door_cafe is in @area_hayes_valley_or_soma , red door cafe"
    assert wording.unmark(marked, ACT) == "red door cafe is in hayes valley or soma , red door cafe"


# ---- scores ----------------------------------------------------------------------------------------------------------


def counts(act: str, marked: str) -> tuple[int, int, int]:
    errors = scoring.slot_errors(acts.parse_act(act), marked)
    return errors.slots, errors.missing, errors.added


def test_slot_errors_are_missing_or_added() -> None:
    act = "inform(name='x';area='y';kidsallowed=no;type=restaurant;food=dont_care)"
    assert counts(act, "@name_x in @area_y has no kid -s") == (3, 0, 0)
    assert counts(act, "@name_x and @name_x has a dog") == (3, 2, 2)  # area, kids; a name, a dog
    assert counts(act, "@area_y @food_z child kid") == (3, 1, 2)
    assert counts("?request(kidsallowed)", "any kid -s ?") == (0, 0, 1)  # so RNNLG counts it
    assert counts("?select(area='y';area='z')", "nothing") == (0, 0, 0)
    assert counts("inform(area='y';area='z')", "@area_y") == (2, 1, 0)


def test_bleu_is_that_of_sacrebleu_where_each_act_has_one_hypothesis() -> None:
    hypotheses = ["the cat sat on the mat", "there is a small dog in the house"]
    references = [["a cat sat on the mat", "the cat was on the mat today"], ["there is a dog in the house"] * 2]
    theirs = BLEU(tokenize="none", smooth_method="none").corpus_score(hypotheses, list(zip(*references, strict=True)))
    ours = scoring.bleu([([one], those) for one, those in zip(hypotheses, references, strict=True)])
    assert math.isclose(ours, theirs.score / 100, rel_tol=1e-5)
    assert scoring.bleu([([""], ["a"])]) == 0.0


# ---- preparation -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dialog")
    assert dialog.main(["toy", "--out", str(folder / "toy")]) == 0
    assert dialog.main(["prepare", "--data", str(folder / "toy"), "--out", str(folder / "text")]) == 0
    return folder


# ---- ranking and the whole -------------------------------------------------------------------------------------------


def test_the_best_five_have_the_fewest_errors() -> None:
    act = acts.parse_act("inform(name='x';kidsallowed=yes)")
    found = [(-0.1, ["hello"]), (-0.2, ["@name_x"]), (-0.3, ["@name_x", "#kid"]), (-0.05, ["@name_x", "<unk>", "#kid"])]
    found += [(-0.4, ["@name_1", "#kid"])]  # the same again, of a system without values
    hypotheses = rank.hypotheses_of(act, found)
    assert [one.marked for one in hypotheses] == ["hello", "@name_x", "@name_x kid", "@name_x <unk> kid"]
    assert [one.score for one in rank.best(act, hypotheses)] == [-0.3, -0.2, -0.1, -0.05]
    assert [one.score for one in rank.best(act, hypotheses, keywords=False)] == [-0.2, -0.3, -0.1, -0.05]


@pytest.mark.slow
def test_train_generate_and_score(world: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    text, data, prior = world / "text", world / "data-bin", world / "data-bin" / "prior"
    shell.run(
        "fairseq-preprocess", "-s", "act", "-t", "sent", "--trainpref", text / "train", "--validpref", text / "valid",
        "--srcdict", text / "dict.act.txt", "--tgtdict", text / "dict.sent.txt", "--destdir", data,
    )  # fmt: skip
    shell.run(
        "fairseq-preprocess", "-s", "act", "-t", "sent", "--trainpref", text / "plain" / "train", "--srcdict",
        text / "dict.act.txt", "--tgtdict", text / "dict.sent.txt", "--destdir", world / "plain-bin",
    )  # fmt: skip
    shell.run(
        "llrnn", "prior", "--dict", data / "dict.sent.txt", "--count-text", text / "counted.sent",
        "--top-words", (text / "top-words.sent").read_text().strip(), "--set", f"patterns={text / 'patterns.toml'}",
        "--evidence", "patterns", "--set", f"evidence.mapping={text / 'mapping.tsv'}", "--set",
        "evidence.unsupported.urls=0",
        "--lexical-translation", world / "plain-bin", "--set", "translations.aligner=ibm1", "--out", prior,
    )  # fmt: skip
    shell.run(
        "llrnn", "prior", "--dict", data / "dict.act.txt", "--count-text", text / "plain" / "train.act",
        "--top-words", (text / "top-words.act").read_text().strip(), "--set", f"patterns={text / 'patterns.toml'}",
        "--out", data / "source",
    )  # fmt: skip
    ours = ("--user-dir", "fairseq_llrnn", "--task", "llrnn_translation", "-s", "act", "-t", "sent", "--prior", prior)
    ours = (*ours, "--source-prior", data / "source", "--expert", f"{FOLDER / 'dialog_experts.py'}:Coverage")
    sizes = [f"--{part}-{what}" for part in ("encoder", "decoder") for what in ("embed-dim", "hidden-size")]
    shell.run(
        "fairseq-train", data, *ours, "--arch", "llrnn_lstm", *(word for size in sizes for word in (size, 32)),
        "--criterion", "log_linear", "--optimizer", "adam", "--lr", 0.01, "--max-tokens", 250, "--max-epoch", 3,
        "--invented-evidence", 0,
        "--save-dir", world / "model", "--cpu", "--num-workers", 0, "--required-batch-size-multiple", 1,
        "--no-epoch-checkpoints",
    )  # fmt: skip
    written = shell.run(
        "fairseq-interactive", data, *ours, "--path", world / "model" / "checkpoint_best.pt", "--beam", 6, "--nbest", 6,
        "--max-len-b", 30, "--cpu", "--max-tokens", 1000, "--buffer-size", 1000, "--input", text / "test.acts",
    )  # fmt: skip
    (world / "nbest").write_text(written.out, encoding="utf-8")
    alike: dict[str, list[list[float]]] = defaultdict(list)  # the scores of acts by their slots
    for number, act in enumerate((text / "test.acts").read_text(encoding="utf-8").splitlines()):
        scores = [score for score, _ in rank.read_hypotheses(world / "nbest")[number]]
        alike[re.sub(r"@([a-z]+)_\S*", r"\1", act)].append(scores)
    assert max(map(len, alike.values())) > 1  # the encoder does not see which value it is
    assert all(scores == pytest.approx(several[0], abs=1e-4) for several in alike.values() for scores in several)
    capsys.readouterr()
    assert dialog.main(["score", "--data", str(world / "toy"), "--system", f"ll={world / 'nbest'}"]) == 0
    first, _, _, *rows = capsys.readouterr().out.splitlines()
    assert "0 missing, 0 added (0.00 %)" in first
    assert [row[:34].strip() for row in rows] == ["ll, as it comes", "ll, ranked as RNNLG", "ll, ranked"]
    assert all(row.split()[-1] == "0" for row in rows)  # nothing without evidence, however little it has learnt
    raw = float(rows[0].split()[-7].rstrip("%"))
    assert float(rows[2].split()[-7].rstrip("%")) <= raw
