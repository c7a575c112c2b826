"""`llrnn compare` on 200 made-up sentences: the table, its files, a second start, failures and messages."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from shell import Shell
from small_corpus import Llrnn
from small_transformers import save_network

from fairseq_llrnn.files.atomic_write import lock
from toy_french import make_corpus, write_corpus

MODELS = ("ngrams", "softmax", "pieces", "characters", "suffixes", "mixed")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus")
    write_corpus(make_corpus(200, seed=1), place)
    return place


def texts(corpus: Path) -> list[object]:
    return [word for name in ("train", "valid", "test") for word in (f"--{name}", corpus / f"{name}.txt")]


@pytest.fixture(scope="module")
def compared(corpus: Path, shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the output of a comparison with two seeds and one epoch."""
    out = tmp_path_factory.mktemp("compared") / "out"
    options = ["--models", *MODELS, "--tries", 1, "--max-epoch", 1, "--seeds", 1, 2, "--jobs", 2, "--closed"]
    return out, shell.run("llrnn", "compare", *texts(corpus), "--out", out, *options).out


def test_the_table(compared: tuple[Path, str]) -> None:
    out, printed = compared
    rows = [line.split("\t") for line in (out / "table.tsv").read_text().splitlines()]
    assert [row[0].partition(" (")[0] for row in rows[1:9]] == [
        *(f"Kneser-Ney {order}-grams" for order in (2, 3, 4, 5)),
        "softmax",
        "softmax of BPE pieces",
        "softmax of characters",
        "ours, suffixes",
    ]
    vocabulary = next(out.glob("models/pieces/*/pieces.vocab")).read_text().splitlines()
    assert rows[6][0].startswith(f"softmax of BPE pieces ({len(vocabulary)})")
    for row, network in zip(rows[9:13], ("softmax", "softmax of BPE", "softmax of characters", "ours"), strict=True):
        assert row[0].rpartition("as the mixture ")[2].startswith(network) and "-grams" in row[0]
    assert len(rows) == 15 and {len(row) for row in rows} == {13}
    figures = {row[0].partition(" (not")[0].partition(" (worse")[0]: (float(row[1]), float(row[2])) for row in rows[1:]}
    assert all(0.5 < value < 8 for pair in figures.values() for value in pair)
    neural = figures["ours, suffixes"]
    mixed = next(pair for name, pair in figures.items() if "ours, suffixes +" in name)
    assert mixed[0] <= min(neural[0], *(figures[f"Kneser-Ney {order}-grams"][0] for order in (2, 3, 4, 5))) + 1e-3
    assert sum(row[7] == "ours" for row in rows) == 1
    assert all(0 < float(row[10]) <= 1 for row in rows[1:] if row[7] != "ours")
    assert (out / "table.md").read_text().count("\n") == 16 and "toprule" in (out / "table.tex").read_text()
    assert "21 models, about 1 minute on 2 idle cores\n" in printed
    assert rows[5][0] == "softmax (not converged, worse than 2-grams)"
    assert "not converged: it\nimproved until its last" in printed
    assert "with the best single model of words on the validation text:" in printed


def test_the_figures_are_those_of_llrnn_score(compared: tuple[Path, str], corpus: Path, shell: Shell) -> None:
    out, _ = compared
    rows = {row["name"]: row for row in json.loads((out / "result.json").read_text())["rows"]}
    bits = []
    for seed in (1, 2):
        place = out / "models" / "suffixes" / f"{rows['suffixes']['setting']}-spelled-seed{seed}"
        path = place / "model" / "checkpoint_best.pt"
        scored = shell.run("llrnn", "score", "--path", path, "--open", "--json", corpus / "test.txt")
        bits.append(json.loads(scored.out)["bits_per_character"])
        scored = shell.run("llrnn", "score", "--path", path, "--open", "--json", corpus / "valid.txt")
        logged = re.findall(r"^valid +loss ([\d.]+)", (place / "log.txt").read_text(), re.MULTILINE)[-1]
        assert float(logged) == pytest.approx(json.loads(scored.out)["bits_per_token"], abs=2e-3)  # with the spelling
    assert rows["suffixes"]["test"] == pytest.approx(np.mean(bits), abs=1e-4)
    assert rows["suffixes"]["deviation"] == pytest.approx(np.std(bits, ddof=1), abs=1e-4)
    prior = out / "models" / "ngrams-3" / "fixed-seed1" / "data" / "prior"
    scored = shell.run("llrnn", "score", "--prior", prior, "--open", "--json", corpus / "test.txt")
    assert rows["ngrams-3"]["test"] == pytest.approx(json.loads(scored.out)["bits_per_character"], abs=1e-4)


def test_the_perplexities_of_a_closed_dictionary(compared: tuple[Path, str], corpus: Path, shell: Shell) -> None:
    out, printed = compared
    rows = {row["name"]: row for row in json.loads((out / "result.json").read_text())["rows"]}
    assert rows["pieces"]["perplexity"] is None and rows["mixed-ours"]["perplexity"] is None
    assert "perplexity of the\ntest text over a closed dictionary, which contains the test's words" in printed
    closed = [out / "models" / "suffixes" / f"{rows['suffixes']['setting']}-closed-seed{seed}" for seed in (1, 2)]
    models = {"suffixes": [["--path", place / "model" / "checkpoint_best.pt"] for place in closed]}
    models["ngrams-3"] = [["--prior", out / "models" / "ngrams-3" / "fixed-closed-seed1" / "data" / "prior"]]
    for name, options in models.items():
        scored = [shell.run("llrnn", "score", *option, "--json", corpus / "test.txt") for option in options]
        facts = [json.loads(one.out) for one in scored]
        assert all(fact["unknown_words"] == 0 for fact in facts)
        expected = np.mean([2 ** fact["bits_per_token"] for fact in facts])
        assert rows[name]["perplexity"] == pytest.approx(expected, rel=1e-4)


def test_a_second_start_skips_finished_models(
    compared: tuple[Path, str], corpus: Path, shell: Shell, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(compared[0], out)
    results = {path: path.stat().st_mtime_ns for path in out.glob("models/*/*/result.json")}
    lost = out / "models" / "ngrams-2" / "fixed-seed1" / "result.json"
    lost.unlink()
    table = (out / "table.tsv").read_text()
    options = ["--models", *MODELS, "--tries", 1, "--max-epoch", 1, "--seeds", 1, 2, "--closed"]
    done = shell.run("llrnn", "compare", *texts(corpus), "--out", out, *options)
    assert "21 models (20 of them finished), about 1 minute on 1 idle core\n" in done.out
    again = {path: path.stat().st_mtime_ns for path in out.glob("models/*/*/result.json")}
    assert [path for path in results if again[path] != results[path]] == [lost]
    cells = [[line.split("\t")[:12] for line in text.splitlines()] for text in (table, (out / "table.tsv").read_text())]
    assert cells[0] == cells[1]
    converged = next(out.glob("models/pieces/*seed1/result.json"))
    converged.write_text(converged.read_text().replace('"is_converged": false', '"is_converged": true'))
    options[options.index("--max-epoch") + 1] = 2
    done = shell.run("llrnn", "compare", *texts(corpus), "--out", out, *options)
    assert "21 models (9 of them finished), about 1 minute on 1 idle core\n" in done.out  # and the n-grams
    with (out / "lock").open("w") as file:
        assert lock(file.fileno())
        busy = shell.run("llrnn", "compare", *texts(corpus), "--out", out, *options, code=2)
    assert f"llrnn: error: --out {out}: another process is working on it; wait for its end" in busy.err
    other = shell.run("llrnn", "compare", *texts(corpus), "--out", out, "--max-epoch", 1, code=2)
    found = "expected results with --max-epoch 1, found those with --max-epoch 2; use another --out"
    assert f"llrnn: error: --out {out}: {found}" in other.err
    swapped = ["--train", corpus / "train.txt", "--valid", corpus / "test.txt", "--test", corpus / "valid.txt"]
    other = shell.run("llrnn", "compare", *swapped, "--out", out, code=2)
    assert f"--out {out}: expected results of these texts, found those of other texts; use another" in other.err


def test_a_failed_model_has_a_row_with_the_reason(corpus: Path, shell: Shell, tmp_path: Path) -> None:
    options = ["--tries", 1, "--max-epoch", 1, "--models"]
    command = ["llrnn", "compare", *texts(corpus), "--out", tmp_path / "out", *options]
    shell.run(*command, "ngrams")
    place = tmp_path / "out" / "models" / "softmax" / "dropout0.4-width256-rate0.004-spelled-seed1"
    place.mkdir(parents=True)
    (place / "data").write_text("")
    done = shell.run(*command, "ngrams", "softmax")
    assert f"note: {place.relative_to(tmp_path / 'out')} failed: " in done.out and "File exists" in done.out
    (row,) = (line for line in done.out.splitlines() if ": failed, " in line)
    assert row.startswith("softmax: failed, ") and "File exists" in row
    assert "Kneser-Ney 5-grams" in done.out and "Traceback" not in done.err


def test_a_corrected_lexicon_trains_only_its_model(corpus: Path, shell: Shell, tmp_path: Path) -> None:
    lexicon, out = tmp_path / "lexicon.tsv", tmp_path / "out"
    command = ["llrnn", "compare", *texts(corpus), "--out", out, "--tries", 1, "--max-epoch", 1, "--models", "ngrams"]
    shell.run(*command)
    lexicon.write_text("one cell\n")
    more = ["lexicon", "--lexicon", lexicon]
    assert f"llrnn: error: {lexicon}, line 1" in shell.run(*command, *more, code=2).err
    lexicon.write_text("le\tle\tDET\t_\n")
    assert "5 models (4 of them finished)" in shell.run(*command, *more).out
    lexicon.write_text("la\tle\tDET\t_\n")
    again = shell.run(*command, *more)
    assert "5 models (4 of them finished)" in again.out
    row = json.loads((out / "result.json").read_text())["rows"][4]
    assert row["name"] == "lexicon" and (out / row["place"] / "result.json").exists()
    assert "5 models, all finished" in shell.run(*command, *more).out
    assert len([*out.glob("models/lexicon-*")]) == 2 and "Traceback" not in again.err


def test_a_lexicon_of_another_language_is_a_warning(corpus: Path, shell: Shell, tmp_path: Path) -> None:
    lexicon = tmp_path / "other.tsv"
    lexicon.write_text("".join(f"xq{n}z\txq\tNOUN\tCase=Nom\n".replace(str(n), "ab"[n % 2] * n) for n in range(1, 40)))
    options = ["--models", "lexicon", "--lexicon", lexicon, "--tries", 1, "--max-epoch", 1, "--out", tmp_path / "out"]
    out = shell.run("llrnn", "compare", *texts(corpus), *options).out
    assert f"words are known to {lexicon}, among 39: is it of the text's language, and in its case?" in out
    assert sum(line.startswith("warning: ") for line in out.splitlines()) == 1


def test_a_full_disk_is_the_reason_in_the_row(corpus: Path, shell: Shell, tmp_path: Path) -> None:
    options = ["--models", "softmax", "--tries", 1, "--max-epoch", 1, "--out", tmp_path / "out"]
    done = shell.run("llrnn", "compare", *texts(corpus), *options, disk=4_000_000, code=1)
    (row,) = (line for line in done.out.splitlines() if line.startswith("softmax: failed, "))
    assert "checkpoint_best.pt: the checkpoint cannot be written" in row and "Traceback" not in done.err
    assert "We train language models" not in done.out
    again = shell.run("llrnn", "compare", *texts(corpus), *options)  # with space, the same command continues
    assert "failed" not in again.out and "We train language models" in again.out


def test_a_pretrained_network_is_fine_tuned(corpus: Path, shell: Shell, llrnn: Llrnn, tmp_path: Path) -> None:
    folder, out = save_network(tmp_path / "tiny", positions=512), tmp_path / "out"
    options = ["--models", "ngrams", "--pretrained", folder, "--tries", 2, "--seeds", 1, 2, "--max-epoch", 1]
    options.append("--closed")
    printed = shell.run("llrnn", "compare", *texts(corpus), "--out", out, *options).out
    assert "11 models" in printed and "\ntiny, fine-tuned (not converged, worse than 2-grams) " in printed
    (row,) = (row for row in json.loads((out / "result.json").read_text())["rows"] if row["name"] == "pretrained-tiny")
    assert row["setting"] in ("rate0.0003", "rate0.0001") and row["perplexity"] is None and row["unseen"] > row["seen"]
    assert row["place"].startswith("models/pretrained-tiny-")  # with a digest of the network
    bits = []
    for seed in (1, 2):
        path = (out / row["place"]).with_name(f"{row['setting']}-seed{seed}") / "model"
        scored = shell.run("llrnn", "score", "--path", path, "--json", corpus / "test.txt")
        bits.append(json.loads(scored.out)["bits_per_character"])
    assert row["test"] == pytest.approx(np.mean(bits), abs=1e-4)
    (folder / "tokenizer.json").unlink()
    done = llrnn("compare", *texts(corpus), "--out", tmp_path / "other", "--pretrained", folder)
    done.refuses(
        f"--pretrained {folder}: expected a folder of save_pretrained with config.json, tokenizer.json and "
        "*.safetensors, found no tokenizer.json; save the model and its tokenizer there"
    )
    done = llrnn("compare", *texts(corpus), "--out", tmp_path / "other", "--models", "pretrained")
    done.refuses("--models pretrained: it needs --pretrained, a folder; add that")


def test_python_returns_the_table(corpus: Path, shell: Shell, tmp_path: Path) -> None:
    program = (
        "import sys, fairseq_llrnn; places = dict(zip(('train', 'test', 'out'), sys.argv[1:]))\n"
        "table = fairseq_llrnn.compare(**places, models=['ngrams'])\n"
        "print(*(row.title for row in table.rows), sep='; ')"
    )
    files = [corpus / "train.txt", corpus / "test.txt", tmp_path / "out"]
    out = shell.run("python", "-c", program, *files).out
    assert out.startswith("Kneser-Ney 2-grams; Kneser-Ney 3-grams; ") and out.count("\n") == 1


def test_messages(corpus: Path, llrnn: Llrnn, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    full = llrnn("compare", *texts(corpus), "--out", tmp_path, "--models", "ngrams")
    full.refuses(f"--out {tmp_path}: expected a new or empty folder, found other files; name another one")
    done = llrnn("compare", *texts(corpus), "--out", tmp_path / "out", "--models", "lexicon")
    source = "found no source of them; add --conllu, --lexicon or --language"
    done.refuses(f"--models lexicon: it needs features of words, {source}")
    done = llrnn("compare", *texts(corpus), "--out", tmp_path / "out", "--lexicon", tmp_path / "no.tsv")
    assert f"{tmp_path / 'no.tsv'}: " in done.error and not (tmp_path / "out").exists()
    assert "\nuk " in llrnn("compare", "--language", "list", "--out", tmp_path / "out").out
    done = llrnn("compare", "--train", corpus / "train.txt", "--out", tmp_path / "out")
    done.refuses("--train needs --test, the text of the table; add it")
    done = llrnn("compare", "--out", tmp_path / "out", "--models", "ngrams", "UD_X")
    done.refuses(
        "--models: expected ngrams, softmax, softmax-unigram, pieces, characters, suffixes, lexicon, pretrained or "
        "mixed, found 'UD_X'; correct it"
    )
    done = llrnn("compare", "--out", tmp_path / "out", "--lower", "UD_X")
    done.refuses(
        "--lower UD_X: expected the code of a language, such as tr, az or lt, found no known one; leave it empty for "
        "all languages but these three, and write FOLDER before it"
    )
