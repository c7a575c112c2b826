"""The comparison of open vocabularies: small systems end to end, and figures that are bits of the same text."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from example_modules import EXAMPLES, load
from example_parts import text_units, unit_bits
from shell import Shell
from tiny_world import World, sentences

from fairseq_llrnn.comparison.pieces import CHARACTERS, Pieces
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart
from fairseq_llrnn.prior.prior import Prior

pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: pip install '.[pieces]'")
example, _ = load(EXAMPLES / "open_vocabulary", "open_vocabulary", "open_systems")
STRANGE = "le chateau voit la roseraie\nune été 𝄞\n"


@pytest.fixture(scope="module")
def text(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("open-text")
    for split in ("train", "valid"):
        (place / f"{split}.txt").write_bytes((world.place / f"{split}.txt").read_bytes())
    (place / "test1.txt").write_text("\n".join(sentences(5, 8)) + "\n", encoding="utf-8")
    (place / "test2.txt").write_text(STRANGE, encoding="utf-8")
    return place


@pytest.mark.slow
def test_all_systems_are_measured_in_bits_per_character(shell: Shell, world: World, text: Path, tmp_path: Path) -> None:
    def execute(command: Sequence[str], stdin: str) -> str:
        extra = ["--max-tokens", "256"] if command[0] == "fairseq-train" else []
        return shell.run(command[0], *command[1:], *extra, stdin=stdin).out

    sizes = example.Sizes(width=8, epochs=1, pieces=300, top_words="20", open_types=3)
    lexicon = ["--lexicon", str(world.place / "lexicon.tsv")]
    shown = example.compare(list(example.SYSTEMS), text, tmp_path, lexicon, sizes, execute)
    rows = [line.split("|")[1:-1] for line in shown.splitlines() if line.startswith("| ")][1:]
    assert [row[0].strip() for row in rows] == [system.what for system in example.SYSTEMS.values()]
    assert all(0.5 < float(cell) < 20.0 for row in rows for cell in row[1:])
    assert "num_updates 10" in (tmp_path / "pieces" / "train.log").read_text(encoding="utf-8")
    again = example.compare(["open"], text, tmp_path, lexicon, sizes, lambda command, stdin: pytest.fail("run again"))
    assert again == shown
    missing = r"open/data-bin/prior: expected the prior that spells <unk>, found none; train `open` first"
    with pytest.raises(DataError, match=missing):
        example.compare(["unk"], text, tmp_path / "none", lexicon, sizes, execute)
    # the spelling of <unk>, by hand
    prior = tmp_path / "open" / "data-bin" / "prior"
    vocabulary = Prior.load(prior).find(OpenVocabularyPart).vocabulary
    known = [line.split()[0] for line in (tmp_path / "unk" / "dict.txt").read_text(encoding="utf-8").splitlines()]
    shares = np.exp(vocabulary.log_shares)

    def mixed(words: list[str]) -> np.ndarray:
        return np.exp(vocabulary.strings.log_probs(words)) @ shares

    unknown = [word for word in STRANGE.split() if word not in known]
    assert {"chateau", "roseraie", "été", "𝄞"} <= set(unknown)
    expected = -np.log2(mixed(unknown) / (1.0 - mixed(known).sum())).sum()
    assert unit_bits.spelling_bits(STRANGE.split(), tmp_path / "unk", prior) == pytest.approx(expected)


def test_units_lose_nothing(text: Path, tmp_path: Path) -> None:
    """Every system's text is the same text; pieces have bytes for what they have never seen."""
    line = "le chat 𝄞 été"
    assert text_units.as_characters(line).replace(" ", "").replace(text_units.BLANK, " ") == line
    characters = Pieces.train(text / "train.txt", tmp_path / "characters.model", CHARACTERS, blank_last=True)
    assert characters.write("le chat").split(" ") == [*"le", "▁", *"chat", "▁"]
    whole = Pieces.train(text / "train.txt", tmp_path / "whole.model", 300, blank_last=True)
    pieces = Pieces.train(text / "train.txt", tmp_path / "pieces.model", 300)
    for units in (characters, whole, pieces):
        written = units.write(line).split(" ")
        assert units.processor.decode(written).rstrip(" ") == line
        assert units is pieces or (len(units.sizes(written)) == 4 and sum(units.sizes(written)) == len(written))
    symbols = pieces.symbols(["le chat"])
    assert set(pieces.write(line).split(" ")) <= set(symbols) and min(symbols.values()) == 1
    assert unit_bits.bits_of_unknown_character() == pytest.approx(math.log2(1_112_064))
