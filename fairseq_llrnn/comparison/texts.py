"""The three texts of a comparison, one sentence per line, with words as in `llrnn text`.

Without a validation text, the last tenth of the training sentences becomes one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from fairseq_llrnn.comparison.pieces import BLANK
from fairseq_llrnn.comparison.settings import Comparison
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import characters_of
from fairseq_llrnn.features.dictionary import SPECIALS, UNK
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.files.text_lines import iter_lines, text_only
from fairseq_llrnn.lexicon.casing import language_of, lower
from fairseq_llrnn.lexicon.language_check import FEW, has_letters
from fairseq_llrnn.lexicon.language_check import LEAST as LEAST_COMPARED
from fairseq_llrnn.lexicon.readers.conllu import conllu_lines, treebank

SPLITS = ("train", "valid", "test")
SCORED = ("valid", "test")
HELD_OUT = 10  # one of so many training sentences, without a validation text
LEAST = {"train": 100, "valid": 10, "test": 10}  # sentences
LONG = 4  # words of a sentence whose repetition is no chance
MOST_REPEATED = 0.5  # of the long sentences of a held-out text


@dataclass(frozen=True)
class Texts:
    """Lines of each text, and the treebanks with features of words."""

    train: Sequence[str]
    valid: Sequence[str]
    test: Sequence[str]
    treebanks: Sequence[str] = ()
    notes: Sequence[str] = ()
    cut: tuple[Path, Path] | None = None  # a treebank with held-out sentences, and the file of the other ones

    def lines(self, split: str) -> Sequence[str]:
        """Return the lines of one of SPLITS."""
        return {"train": self.train, "valid": self.valid, "test": self.test}[split]

    @property
    def originals(self) -> list[str]:
        """The treebanks, the one that was cut as a whole."""
        whole, part = map(str, self.cut or ("", ""))
        return [whole if path == part else path for path in self.treebanks]

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the training text."""
        return frozenset(word for line in self.train for word in line.split())

    @cached_property
    def num_tokens(self) -> int:
        """The number of words of the training text."""
        return sum(len(line.split()) for line in self.train)

    @cached_property
    def num_characters(self) -> int:
        """The number of characters of the training text, with blanks and ends of lines."""
        return sum(characters(self.train))

    @cached_property
    def num_words(self) -> int:
        """The number of different words of all texts."""
        return len({word for split in SPLITS for line in self.lines(split) for word in line.split()})

    @property
    def fingerprint(self) -> str:
        """A hash of the texts."""
        digest = hashlib.sha256()
        for split in SPLITS:
            digest.update("".join(f"{line}\n" for line in self.lines(split)).encode("utf-8", "surrogateescape") + b"\0")
        return digest.hexdigest()[:16]

    def summary(self) -> list[str]:
        """Return the sizes of the texts, a line for each."""
        rows = []
        for split in SPLITS:
            words = [word for line in self.lines(split) for word in line.split()]
            unseen = sum(word not in self.words for word in words) / len(words)
            tail = "" if split == "train" else f", {unseen:.1%} not in the training text"
            rows.append(f"{split:<5}  {len(self.lines(split)):>7,} sentences  {len(words):>9,} words{tail}")
        return rows


def characters(lines: Sequence[str]) -> list[int]:
    """Return the number of characters of each line, with blanks and the line end."""
    return [characters_of(line.split()) for line in lines]


def read_texts(settings: Comparison) -> Texts:
    """Read and check the texts of a comparison.

    Raises:
        DataError: a missing or unreadable file, a text that is too short, a held-out text that repeats the training
            text, a treebank in another language, or symbols that are no words.
    """
    if settings.folder is not None:
        files = _treebank_files(settings.folder, settings.name_of)
    else:
        named = {"train": settings.train, "valid": settings.valid, "test": settings.test}
        files = {split: path for split, path in named.items() if path is not None}
    found = {split: _lines(path, settings.lower, settings.may_have_pieces) for split, path in files.items()}
    notes = []
    if "valid" not in found:
        size = max(1, len(found["train"]) // HELD_OUT)
        found["valid"], found["train"] = found["train"][-size:], found["train"][:-size]
        notes.append(f"no validation text: the last {size:,} training sentences are held out for it")
    for split in SPLITS:
        if len(found[split]) < LEAST[split]:
            raise DataError(
                f"{files.get(split, files['train'])}: expected at least {LEAST[split]} sentences of the {split} text, "
                f"found {len(found[split])}; give a longer text"
            )
    notes += _repetitions(found, files)
    own, cut = [files["train"]] if _is_treebank(files["train"]) else [], None
    if own and "valid" not in files:
        cut = own[0], settings.out / "train.conllu"
        own = [cut[1]]
    further = as_paths(settings.words.conllu)
    texts = Texts(found["train"], found["valid"], found["test"], [*further, *map(str, own)], notes, cut)
    for split in SCORED:
        if split in files:
            held_out = {word for line in texts.lines(split) for word in line.split()}
            _check_language(files[split], held_out, texts.words, f"a {split} text", settings.name_of("lower"))
    for path in further:
        forms = {word for words in conllu_lines([path], "syntactic", settings.lower, None) for word in words}
        _check_language(path, forms, texts.words, "a treebank", settings.name_of("lower"))
    return texts


def write_treebank(texts: Texts) -> None:
    """Write the training sentences of a treebank without the held-out ones, whose features must not be read."""
    if texts.cut is None:
        return
    whole, part = texts.cut
    lines, sentences, is_inside = list[str](), 0, False
    for _, line in iter_lines(whole):
        is_row = bool(line.strip()) and not line.startswith("#")
        sentences += is_row and not is_inside
        if sentences > len(texts.train):
            break
        is_inside = is_row or (is_inside and bool(line.strip()))
        lines.append(line)
    write_lines(part, lines)


def _treebank_files(folder: Path, name_of: Callable[[str], str]) -> dict[str, Path]:
    """Return the files of a folder of Universal Dependencies. `dev` may be missing."""
    if not folder.is_dir():
        found = f"a file; pass it with {name_of('train')}" if folder.exists() else "no such folder; correct the path"
        raise DataError(f"{folder}: expected the folder of a treebank, found {found}", folder)
    if not any(_is_treebank(path) for path in folder.iterdir()):
        raise DataError(
            f"{folder}: expected CoNLL-U files, such as cy_ccg-ud-train.conllu, found none; give the folder of a "
            f"treebank, or texts with {name_of('train')} and {name_of('test')}",
            folder,
        )
    files = {"train": treebank(folder, "train"), "test": treebank(folder, "test")}
    return files | ({"valid": treebank(folder, "dev")} if any(folder.glob("*dev.conllu*")) else {})


def _is_treebank(path: Path) -> bool:
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    return bare.suffix in (".conllu", ".conllup")


def _lines(path: Path, casing: str | None, has_pieces: bool) -> list[str]:
    """Return the lines of a text or treebank. Empty lines are left out.

    Args:
        casing: as in `conllu_lines`. has_pieces: whether pieces are made from the text.
    """
    is_treebank, found = _is_treebank(path), list[str]()
    if is_treebank:
        sentences = conllu_lines([str(path)], "syntactic", casing, None)
        lines: Iterable[tuple[int, str]] = enumerate((" ".join(words) for words in sentences), 1)
    else:
        spelled = str if casing is None else partial(lower, language=language_of(casing))
        lines = ((number, spelled(line)) for number, line in text_only(iter_lines(path), str(path)))
    for number, line in lines:
        words = line.split()
        if reason := _what_is_wrong(words, has_pieces):
            raise DataError(f"{path}, {'sentence' if is_treebank else 'line'} {number}: {reason}")
        found += [" ".join(words)] if words else []
    return found


def _what_is_wrong(words: Sequence[str], has_pieces: bool) -> str | None:
    """Return why models cannot read a line."""
    if symbols := [word for word in words if word in SPECIALS]:
        advice = "give the text without replaced words" if symbols[0] == UNK else "remove it"
        return (
            f"expected words, found {symbols[0]}, a symbol of the models; {advice}, or write another word for it in "
            "all texts"
        )
    if has_pieces and any(BLANK in word for word in words):
        return (
            f"expected words without {BLANK} (U+2581), with which pieces write blanks, found it; replace it in all "
            "texts, or leave pieces out of the models"
        )
    return None


def _repetitions(found: dict[str, list[str]], files: dict[str, Path]) -> list[str]:
    """Return notes on held-out sentences in the training text. Raises DataError if they are most of a text."""
    seen, notes = set(found["train"]), []
    for split in SCORED:
        long = [line for line in found[split] if len(line.split()) >= LONG]
        repeated = [line for line in long if line in seen]
        if repeated and len(repeated) > MOST_REPEATED * len(long):
            raise DataError(
                f"{files.get(split, files['train'])}: expected a {split} text that the training text lacks, found "
                f"{len(repeated):,} of {len(long):,} sentences in both, such as {repeated[0]!r}; give another text"
            )
        if repeated:
            notes.append(f"the training text has {len(repeated):,} of {len(long):,} sentences of the {split} text")
    return notes


def _check_language(path: Path | str, words: Iterable[str], training: Iterable[str], what: str, option: str) -> None:
    """Raise DataError if a file and the training text share few words (lexicon/language_check.py)."""
    others, known = set(filter(has_letters, words)), set(filter(has_letters, training))
    smaller, shared = min(len(others), len(known)), len(others & known)
    if smaller >= LEAST_COMPARED and shared < FEW * smaller:
        raise DataError(
            f"{path}: expected {what} in the language of the training text, found {shared:,} of its {len(others):,} "
            f"words among the {len(known):,} of the training text; give another file, or lower-case the texts with "
            f"{option}"
        )
