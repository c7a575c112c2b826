"""The experiment on Multi30k, stage by stage, on files of its form that hold the toy language."""

import contextlib
import gzip
import io
import runpy
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from example_modules import EXAMPLES, load
from multi30k_files import write_multi30k
from shell import TRUSTING, Shell

COPIES = [("two men see a dog .", "deux hommes voient un chien ."), ("a man .", "un homme .")]
SHORT = ["--max-epoch", "5", "--max-tokens", "3000"]
FEW_WORDS = ["--", "--max-len-a", 0, "--max-len-b", 6]  # of a translation: it learns too little to end one

pairs, recipes, stages, scores, multi30k = load(
    EXAMPLES / "translation", "multi30k_pairs", "multi30k_recipes", "multi30k_stages", "multi30k_scores", "multi30k"
)
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


@pytest.mark.slow
def test_prepared_once(world: Multi30k, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, words in (("word", True), ("word-unk", True), ("word-forms", True), ("piece", False)):
        assert (world.out / folder / "dict.fr.txt").exists() and (world.out / folder / "test.en-fr.en.bin").exists()
        assert any(line.startswith("▁") for line in world.lines(f"{folder}/dict.fr.txt")) != words
    rare, all_words = (len(world.lines(f"{folder}/dict.en.txt")) for folder in ("word-unk", "word"))
    assert rare < all_words
    assert len(world.lines("word-forms/dict.fr.txt")) > len(world.lines("word/dict.fr.txt"))
    assert world.lines("piece/dict.fr.txt") == world.lines("piece/dict.en.txt")
    assert all((world.out / prior / "prior.json").exists() for prior in recipes.PRIORS)
    assert (
        "".join(world.lines("piecetext/test2016.fr"))
        .replace(" ", "")
        .replace("▁", " ")
        .strip()
        .startswith(world.lines("text/test2016.fr")[0])
    )
    before = len(world.commands)
    assert world("prepare", "--data", world.place / "multi30k-en-fr") == 0
    assert world("train", "ll-word", "--", *SHORT) == 0
    assert world("translate", "ll-word", "--set", "test", *FEW_WORDS) == 0
    assert len(world.commands) == before and capsys.readouterr().out == "ll-word: trained already\n"


@pytest.mark.slow
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


@pytest.mark.slow
def test_rescoring(world: Multi30k, capsys: pytest.CaptureFixture[str]) -> None:
    assert world("rescore", "ll-word", "--of", "softmax-word-unk") == 2
    assert "expected a list softmax-word-unk/valid.nbest, found none" in capsys.readouterr().err
    assert world("translate", "softmax-word-unk", "--nbest", 2, *FEW_WORDS) == 0
    assert world("rescore", "ll-word", "--of", "softmax-word-unk") == 0
    said = capsys.readouterr().out
    assert said.index("\ntest\n") < said.index("\nvalid\n") and said.count("bs:1000") == 2 and "\ndev " in said
    assert len(world.lines("results/softmax-word-unk+ll-word/valid.fr")) == len(world.lines("text/val.fr"))


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
        stages.lines_of(shared_data / "multi30k-en-fr" / f"test2016.{kind}.fr.gz") for kind in ("tok", "raw")
    )
    same = sum(scores.detokenise(one) == other.lower() for one, other in zip(tokens, raw, strict=True))
    assert same == 991 and len(raw) == 1000
