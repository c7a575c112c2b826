"""The experiment on Multi30k, stage by stage, on files of its form that hold the toy language."""

import contextlib
import gzip
import io
import os
import runpy
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from example_modules import EXAMPLES, load
from multi30k_files import write_multi30k
from shell import TRUSTING, Shell

from fairseq_llrnn.errors import DataError

COPIES = [("two men see a dog .", "deux hommes voient un chien ."), ("a man .", "un homme .")]
SHORT = ["--max-epoch", "5", "--max-tokens", "3000"]
FEW_WORDS = ["--", "--max-len-a", 0, "--max-len-b", 6]  # of a translation: it learns too little to end one

pairs, recipes, stages, scores, multi30k = load(
    EXAMPLES / "translation", "multi30k_pairs", "multi30k_recipes", "multi30k_stages", "multi30k_scores", "multi30k"
)
FRENCH, CZECH = (pairs.PAIRS[target].copied() for target in ("fr", "cs"))
execute = stages.execute  # which the world replaces


class Multi30k:
    """Runs multi30k.py in this process, its commands in those of `shell`."""

    def __init__(self, place: Path, shell: Shell) -> None:
        self.place, self.shell, self.out = place, shell, place / "out"
        self.commands: list[str] = []
        write_multi30k(place / "multi30k-en-fr", place / "toy", COPIES)
        (place / "ud-french-gsd-1.4").mkdir()
        lexicon = gzip.compress((place / "toy" / "lexicon.tsv").read_bytes())
        (place / "ud-french-gsd-1.4" / "lexicon.tsv.gz").write_bytes(lexicon)

    def execute(self, out: Path, command: Sequence[str], log: str, result: str | None = None) -> None:
        """As stages.execute, where all goes well."""
        self.commands.append(shlex.join(command))
        if command[0] == "python":
            said = io.StringIO()
            with contextlib.chdir(out), contextlib.redirect_stdout(said), pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "argv", list(command[1:]))
                with pytest.raises(SystemExit) as stop:
                    runpy.run_path(command[1], run_name="__main__")
            printed, code = said.getvalue(), stop.value.code
            assert code == 0, command
        else:
            printed = self.shell.run(command[0], *command[1:], cwd=out, variables=TRUSTING).out
        if result is not None:
            (out / result).write_text(printed, encoding="utf-8")

    def run(self, *arguments: object) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["multi30k.py", *map(str, arguments)])
            return multi30k.main()

    def __call__(self, stage: str, *arguments: object) -> int:
        return self.run(stage, "--out", self.out, *arguments)

    def lines(self, name: str) -> list[str]:
        return (self.out / name).read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def world(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Multi30k]:
    """Prepared, and two models trained for five epochs of one update."""
    made = Multi30k(tmp_path_factory.mktemp("multi30k"), shell)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(recipes.PIECES, "vocab_size", 300)
        for name, options in recipes.PRIORS.items():
            without_packages = options.replace("--set words.lemma_floor=1000000", "")
            patch.setitem(recipes.PRIORS, name, without_packages.replace("4000", "60"))
        french, english = recipes.TABLES  # of the whole of the English package, the toy language knows few words
        patch.setattr(recipes, "TABLES", (french, english.replace("--out", "--dict word-forms/dict.en.txt --out")))
        patch.setattr(pairs.Pair, "all_sources", pairs.Pair.knowledge)
        for module in (stages, multi30k):
            patch.setattr(module, "execute", made.execute)
        assert made("prepare", "--data", made.place / "multi30k-en-fr") == 0
        for name in ("softmax-word-unk", "ll-word"):
            assert made("train", name, "--", *SHORT) == 0
        assert made("copy") == 0
        assert made("translate", "softmax-word-unk", "ll-word", "--set", "test", "copy", *FEW_WORDS) == 0
        yield made


def test_prepared_once(world: Multi30k, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, words in (("word", True), ("word-unk", True), ("word-forms", True), ("piece", False)):
        assert (world.out / folder / "dict.fr.txt").exists() and (world.out / folder / "test.en-fr.en.bin").exists()
        assert any(line.startswith("▁") for line in world.lines(f"{folder}/dict.fr.txt")) != words
    rare, all_words = (len(world.lines(f"{folder}/dict.en.txt")) for folder in ("word-unk", "word"))
    assert rare < all_words
    assert len(world.lines("word-forms/dict.fr.txt")) > len(world.lines("word/dict.fr.txt"))
    assert world.lines("piece/dict.fr.txt") == world.lines("piece/dict.en.txt")
    assert all((world.out / prior / "prior.json").exists() for prior in recipes.PRIORS)
    assert "".join(world.lines("piecetext/test2016.fr")).replace(" ", "").replace("▁", " ").strip().startswith(
        world.lines("text/test2016.fr")[0]
    )
    before = len(world.commands)
    assert world("prepare", "--data", world.place / "multi30k-en-fr") == 0
    assert world("train", "ll-word", "--", *SHORT) == 0
    assert world("translate", "ll-word", "--set", "test", *FEW_WORDS) == 0
    assert len(world.commands) == before and capsys.readouterr().out == "ll-word: trained already\n"


def test_made_again_from_another_checkpoint(world: Multi30k) -> None:
    out, results = world.out, "results/two"
    paths = [out / "results" / "ll-word" / "average.pt", out / "models" / "ll-word" / "checkpoint_best.pt"]
    ensemble = ":".join(os.path.relpath(path) for path in paths)
    arguments = ("translate", "two", "--recipe", "ll-word", "--set", "copy", "--checkpoint", ensemble, *FEW_WORDS)
    assert world(*arguments) == 0
    assert len(world.lines(f"{results}/copy.fr")) == 2
    assert world.commands[-1].count(str(out)) == 2 and ":" in world.commands[-1]
    before = len(world.commands)
    assert world(*arguments) == 0 and len(world.commands) == before
    os.utime(out / results / "copy.out", (1, 1))
    assert world(*arguments) == 0 and len(world.commands) == before + 1


def test_a_search_with_other_options_is_refused(world: Multi30k, capsys: pytest.CaptureFixture[str]) -> None:
    before = len(world.commands)
    assert world("translate", "ll-word", "--set", "test", "--", "--lenpen", "2") == 2
    said = capsys.readouterr().err
    place = world.out / "results" / "ll-word" / "test.out"
    assert said.startswith(f"multi30k: error: {place}: expected a search by `fairseq-interactive word ")
    assert " --lenpen 2`, found one by `fairseq-interactive " in said and said.count("\n") == 1
    assert said.endswith("; delete it to search again\n") and len(world.commands) == before
    assert world("translate", "ll-word", "--set", "test", "--gpu", *FEW_WORDS) == 0 and len(world.commands) == before


def test_translations_and_their_scores(world: Multi30k, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("softmax-word-unk", "softmax-word-unk+copy", "softmax-word-unk+copy-unknown", "ll-word"):
        assert len(world.lines(f"results/{name}/test.fr")) == 6
        assert len(world.lines(f"results/{name}/copy.fr")) == 2
    assert "<unk>" not in "".join(world.lines("results/softmax-word-unk+copy/test.fr"))
    assert world("score", "softmax-word-unk", "ll-word") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["test2016"] and [row[0] for row in rows[2:4]] == ["softmax-word-unk", "ll-word"]
    assert rows[4][:4] == ["the", "reference", "itself", "100.00"]
    assert "|tok:none|" in rows[5][1] and "|case:lc|" in rows[6][1] and "|tok:13a|" in rows[6][1]


def test_words_that_training_lacks(world: Multi30k, capsys: pytest.CaptureFixture[str]) -> None:
    assert world("unseen", "ll-word") == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("ll-word ")
    made = scores.unseen_table({"a": ["x new new", "old"]}, ["new new listed", "other old"], {"old"}, {"listed", "new"})
    assert "  50.0% of 4 " in made and " 66.7% of 3 " in made and made.endswith(" 0.0% of 1")


def test_reports(world: Multi30k, capsys: pytest.CaptureFixture[str]) -> None:
    assert world("report", "softmax=softmax-word-unk", "ll-word", "--set", "copy") == 0
    said = capsys.readouterr().out
    assert "softmax  ll-word" in said and "name, unseen" in said and "number, unseen" in said and "tok:none" in said
    assert (world.out / "report-copy.html").exists()


def test_rescoring(world: Multi30k, capsys: pytest.CaptureFixture[str]) -> None:
    assert world("rescore", "ll-word", "--of", "softmax-word-unk") == 2
    assert "expected a list softmax-word-unk/valid.nbest, found none" in capsys.readouterr().err
    assert world("translate", "softmax-word-unk", "--nbest", 2, *FEW_WORDS) == 0
    assert world("rescore", "ll-word", "--of", "softmax-word-unk") == 0
    said = capsys.readouterr().out
    assert said.index("\ntest\n") < said.index("\nvalid\n") and said.count("bs:1000") == 2 and "\ndev " in said
    assert len(world.lines("results/softmax-word-unk+ll-word/valid.fr")) == len(world.lines("text/val.fr"))


def test_what_is_kept(world: Multi30k, tmp_path: Path) -> None:
    log, own = world.out / "models" / "ll-word" / "train.log", world.out / "results" / "ll-word" / "log"
    valid = "2026-11-21 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 4"
    log.write_text(f"$ fairseq-train word --user-dir {recipes.USER_DIR}\nloading\n{valid}\n", encoding="utf-8")
    own.write_text(f"$ python {stages.SCRIPTS}/average_checkpoints.py {world.out}/x\nmean\n", encoding="utf-8")
    try:
        assert world("keep", "ll-word", "--docs", tmp_path / "docs") == 0
    finally:
        log.unlink()
        own.unlink()
    kept = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "docs" / "ll-word").iterdir()}
    assert kept["train.log"] == f"$ fairseq-train word --user-dir fairseq_llrnn\n{valid}\n"
    assert kept["commands"] == "$ python scripts/average_checkpoints.py x\n"
    assert kept["test.fr"].splitlines() == world.lines("results/ll-word/test.fr") and "copy.fr" in kept


def test_a_training_with_other_settings_is_refused(world: Multi30k, capsys: pytest.CaptureFixture[str]) -> None:
    assert world("train", "ll-word") == 2
    folder = world.out / "models" / "ll-word"
    said = capsys.readouterr().err
    assert said.startswith(f"multi30k: error: {folder}: expected a training by `fairseq-train word ")
    assert said.endswith("--max-epoch 5 --max-tokens 3000`; move it away to train again\n")
    (world.out / "models" / "ll-piece").mkdir()
    (world.out / "models" / "ll-piece" / "checkpoint_last.pt").touch()
    assert world("train", "ll-piece") == 2
    assert "found one by `?`; move it away" in capsys.readouterr().err
    with stages.alone(world.out / "models" / "softmax-word.lock"):
        assert world("train", "softmax-word") == 2
    assert capsys.readouterr().err == f"multi30k: error: {world.out}/models/softmax-word: another process is at it\n"


def test_what_is_not_there(world: Multi30k, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: object) -> str:
        assert world.run(*arguments) == 2
        return capsys.readouterr().err.removeprefix("multi30k: error: ").rstrip("\n")

    out = ("--out", world.out)
    assert said("copy", "--out", tmp_path) == (
        f"{tmp_path}: expected a folder of `multi30k.py prepare`, found none; see --out"
    )
    assert said("prepare", "--data", tmp_path, "--out", tmp_path / "new") == (
        f"{tmp_path}/train.tok.en.gz: expected a file of Multi30k, found none; --data names the folders that hold them"
    )
    data = world.place / "multi30k-en-fr"
    assert said("prepare", "--data", data, "--lexicon", tmp_path / "none", "--out", tmp_path / "new") == (
        f"{tmp_path}/none: expected a lexicon (form, lemma, UPOS, FEATS) or a treebank, found none; see --lexicon"
    )
    assert said("prepare", "--target", "cs", "--data", data, *out) == (
        f"{world.out}: expected texts of cs, found those of fr; give another --out"
    )
    (tmp_path / "czech" / "text").mkdir(parents=True)
    CZECH.write(tmp_path / "czech")
    assert said("copy", "--out", tmp_path / "czech") == (
        "copy: expected French as target, found cs; its rules know no other language"
    )
    assert said("translate", "other", *out).startswith("other: expected one of softmax-word, ll-word, ")
    assert said("translate", "other", "--recipe", "ll-word", *out) == (
        f"{world.out}/models/other: expected a folder of checkpoints, found none; `train` makes it"
    )
    assert said("translate", "a", "b", "--checkpoint", "c", *out) == (
        "--checkpoint: expected one name with it, found several"
    )
    assert said("score", "other", *out) == (
        f"{world.out}/results/other/test.fr: expected translations, found none; `translate` makes them"
    )
    assert said("keep", "other", "--docs", tmp_path, *out) == (
        f"{world.out}/results/other: expected translations, found none; `translate` makes them"
    )
    assert said("copy", *out, "--", "--more") == "copy: takes no options after --"
    (world.out / "results" / "cut").mkdir()
    (world.out / "results" / "cut" / "test.out").write_text("D-0\t-1\tune phrase\n")
    assert said("translate", "cut", "--recipe", "ll-word", "--checkpoint", "c", "--set", "test", *out) == (
        f"{world.out}/results/cut/test.out: expected translations of 6 sentences, found 1 (or others); see why in it "
        "and in the log beside it, and delete it"
    )


def test_commands_that_fail_leave_no_result(tmp_path: Path) -> None:
    script = "import sys; print('half'); print('what was wrong', file=sys.stderr); sys.exit(int(sys.argv[1]))"
    with pytest.raises(DataError, match=rf"python failed with status 3; {tmp_path}/log ends with: .*what was wrong"):
        execute(tmp_path, ["python", "-c", script, "3"], "log", "result")
    assert not (tmp_path / "result").exists()
    execute(tmp_path, ["python", "-c", script, "0"], "log", "result")
    assert (tmp_path / "result").read_text() == "half\n"
    assert (tmp_path / "log").read_text().count("$ python -c ") == 2
    assert os.listdir(tmp_path).count("result.tmp") == 0


@pytest.mark.parametrize("options", [[], ["--gpu"]])
def test_a_gpu_is_used_where_it_is_asked_for(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Sequence[str]] = []
    monkeypatch.setattr(stages, "execute", lambda out, command, *log: found.append(command))
    FRENCH.write(tmp_path)
    (tmp_path / "text").mkdir()
    monkeypatch.setattr(sys, "argv", ["multi30k.py", "train", "ll-word", "--out", str(tmp_path), *options])
    assert multi30k.main() == 0
    assert ("--cpu" in found[0]) == (not options) == ("--bf16-products" in found[0])
    checkpoint = ["--checkpoint", str(tmp_path / "model.pt")]
    (tmp_path / "text/val.en").write_text("a man\n", encoding="utf-8")
    monkeypatch.setattr(stages, "_write_translations", lambda *place: None)
    translating = ["multi30k.py", "translate", "softmax-word", "--set", "valid", *checkpoint, "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*translating, *options])
    assert multi30k.main() == 0
    monkeypatch.setattr(sys, "argv", [*translating, "--nbest", "5", *options])
    assert multi30k.main() == 0
    assert ("--cpu" in found[1]) == ("--cpu" in found[2]) == (not options)


def test_command_lines() -> None:
    softmax, ours = recipes.find("softmax-word"), recipes.find("ll-word-seed3")
    line = shlex.join(recipes.train(FRENCH, softmax, "softmax-word", 1))
    assert "--task translation" in line and "--adam-betas '(0.9, 0.98)'" in line
    assert line.endswith("--cpu --seed 1 --save-dir models/softmax-word")
    assert shlex.join(recipes.train(FRENCH, softmax, "softmax-word", 1, gpu=True)) == line.replace(
        " --cpu", " --num-workers 2"
    )
    line = shlex.join(recipes.train(FRENCH, ours, "ll-word-seed3", 3))
    assert "--task llrnn_translation --prior word/prior" in line and "--seed 3" in line
    pieces = recipes.find("ll-piece")
    assert "--post-process sentencepiece" in shlex.join(recipes.generate(FRENCH, pieces, "p", "test"))
    assert "--sentencepiece-model bpe.model" in shlex.join(recipes.interactive(FRENCH, pieces, "p", "t"))
    unknown = recipes.find("softmax-word-unk")
    assert "--print-alignment soft" in shlex.join(recipes.generate(FRENCH, unknown, "p", "test"))
    assert "--print-alignment" not in recipes.generate_nbest(FRENCH, unknown, "p", "test", 5)


def test_command_lines_of_another_target() -> None:
    line = shlex.join(recipes.build_prior(CZECH, "word/prior"))
    assert "--dict word/dict.cs.txt --count-text text/train.cs --conllu cs_cac-ud-dev.conllu.gz cs_cac-ud-test" in line
    assert " --language cs --shapes " in line and "--lexicon" not in line
    line = shlex.join(recipes.build_dictionary(CZECH))
    assert line.startswith("llrnn dictionary --text text/train.cs --conllu ") and " --language cs --most" in line
    assert replace(FRENCH, packages=True).knowledge == "--lexicon lexicon.tsv.gz --language fr"
    assert "--tgtdict dictionary.cs.txt" in shlex.join(recipes.preprocess(CZECH, "word-forms", "there"))
    assert recipes.preprocess(CZECH, "piece", "there")[:5] == ["fairseq-preprocess", "-s", "en", "-t", "cs"]
    assert "--target-lang cs" in shlex.join(recipes.generate(CZECH, recipes.find("ll-word"), "p", "test"))
    assert "--reference text/val.cs " in shlex.join(recipes.rescore(CZECH, "a", "b", "valid", "there"))
    assert "dict.cs.txt" in shlex.join(recipes.binarise(CZECH, "word", "copy/copy", "there"))


def test_the_pair_of_a_folder(tmp_path: Path) -> None:
    assert pairs.Pair.of(tmp_path) == FRENCH and FRENCH.lexicon == "lexicon.tsv.gz"
    CZECH.write(tmp_path)
    assert pairs.Pair.of(tmp_path) == CZECH and CZECH.lexicon is None
    (tmp_path / "pair.json").write_text("[]")
    with pytest.raises(DataError, match=r"pair.json: expected target, lexicons and packages; `prepare` into another"):
        pairs.Pair.of(tmp_path)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("l&apos; homme dit qu&apos; il l&apos; a vu .", "l'homme dit qu'il l'a vu."),
        ("un &quot; petit &quot; chien , ( noir ) &quot; là &quot; .", 'un "petit" chien, (noir) "là".'),
        ("quoi ? oui : 5 % …", "quoi ? oui : 5%…"),
        ("", ""),
    ],
)
def test_running_text_from_tokens(tokens: str, text: str) -> None:
    assert scores.detokenise(tokens) == text


def test_only_french_has_blanks_before_its_signs() -> None:
    assert scores.detokenise("co ? ano : 5", "cs") == "co? ano: 5"


@pytest.mark.real_data("multi30k-en-fr")
def test_running_text_of_the_references(shared_data: Path) -> None:
    tokens, raw = (
        stages.lines_of(shared_data / "multi30k-en-fr" / f"test2016.{kind}.fr.gz")
        for kind in ("tok", "raw")
    )
    same = sum(scores.detokenise(one) == other.lower() for one, other in zip(tokens, raw, strict=True))
    assert same == 991 and len(raw) == 1000
