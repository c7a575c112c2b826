"""Write the texts of twelve languages: sentences of tokens with their case, three splits each.

languages.py writes OUT/LANGUAGE/text/{train,valid,test}.txt from the folders in LANGUAGES below its folder of data. Of
a larger text, it takes the first lines with so many tokens. Treebanks give their syntactic words, novels their tokens
unchanged. All others are split by TOKEN. Blanks around punctuation are lost, for all models.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.lexicon.readers.conllu import in_one_word, iter_conllu_words, treebank

SPLITS = ("train", "valid", "test")
HELD_OUT = 15_000  # the most tokens of the validation text, and of the test text
# A word with what joins its parts (l'eau, so-called), or one sign.
TOKEN = re.compile(r"\w+(?:[-'’ʼ]\w+)*['’]?|[^\w\s]")


@dataclass(frozen=True)
class Language:
    """The places of a language's texts."""

    name: str
    code: str  # ISO 639
    kind: str  # a key of READERS
    folder: str
    stem: str = ""  # of the files' names
    treebanks: tuple[str, ...] = ()  # files with analyses of words, below the data folder; "*": the training treebank


CZECH = ("cac-ud-dev", "cac-ud-test", "fictree-ud-dev", "fictree-ud-test", "pud-ud-test")
LANGUAGES = {
    language.name: language
    for language in (
        Language("hungarian", "hu", "treebank", "ud-hungarian-szeged", treebanks=("*",)),
        Language("greek", "el", "treebank", "ud-greek-gdt", treebanks=("*",)),
        Language("basque", "eu", "verses", "bible-nt", "basque"),
        Language("latvian", "lv", "verses", "bible-nt", "latvian"),
        Language("nahuatl", "nah", "verses", "bible-nt", "nahuatl"),
        Language("swahili", "sw", "verses", "bible-nt", "swahili"),
        Language("ukrainian", "uk", "verses", "bible-nt", "ukrainian"),
        Language("wolof", "wo", "verses", "bible-nt", "wolof"),
        Language("german", "de", "captions", "multi30k-en-cs-de", "de"),
        Language(
            *("czech", "cs", "captions", "multi30k-en-cs-de", "cs"),
            treebanks=tuple(f"czech-treebanks/cs_{part}.conllu.gz" for part in CZECH),
        ),
        Language("english", "en", "novels", "eltec-eng"),
        Language("french", "fr", "novels", "eltec-fra", treebanks=("ud-french-gsd-1.4/train.conllu.gz",)),
    )
}


def tokens(text: str) -> str:
    """Split a raw line into tokens, in Unicode's composed form."""
    return " ".join(TOKEN.findall(unicodedata.normalize("NFC", text)))


def _treebank(language: Language, data: Path, split: str) -> Iterator[str]:
    name = "dev" if split == "valid" else split
    for words in iter_conllu_words(treebank(data / language.folder, name), lowercase=False):
        yield " ".join(in_one_word(token.form) for token in words)


def _verses(language: Language, data: Path, split: str) -> Iterator[str]:
    path = data / language.folder / f"{language.stem}.{split}.tsv.gz"
    for number, line in iter_lines(path):
        verse = line.split("\t")
        if len(verse) != 2:
            raise DataError(f"{path}, line {number}: expected a verse's id, a tab and its text, found {line[:80]!r}")
        yield tokens(verse[1])


def _captions(language: Language, data: Path, split: str) -> Iterator[str]:
    name = {"train": "train", "valid": "val", "test": "test2016"}[split]
    for _, line in iter_lines(data / language.folder / f"{name}.raw.{language.stem}.gz"):
        yield tokens(line)


def _novels(language: Language, data: Path, split: str) -> Iterator[str]:
    for _, line in iter_lines(data / language.folder / f"{split}.txt.gz"):
        yield " ".join(line.split())


READERS = {"treebank": _treebank, "verses": _verses, "captions": _captions, "novels": _novels}


def first(lines: Iterable[str], most: int) -> list[str]:
    """Return the first lines that are not empty, up to so many tokens."""
    taken, size = list[str](), 0
    for line in lines:
        if size >= most:
            break
        if line:
            taken.append(line)
            size += line.count(" ") + 1
    return taken


def texts(language: Language, data: Path, num_words: int) -> dict[str, list[str]]:
    """Return the lines of each split. Raises DataError if a folder or file is missing, or a text is empty.

    Args:
        num_words: the most tokens of the training text.
    """
    folder = data / language.folder
    if not folder.is_dir():
        raise DataError(f"{folder}: expected the folder with the texts of {language.name}, found none; see DATA")
    read = READERS[language.kind]
    found = {
        split: first(read(language, data, split), num_words if split == "train" else HELD_OUT) for split in SPLITS
    }
    for split, lines in found.items():
        if not lines:
            raise DataError(f"{folder}: expected a {split} text of {language.name}, found no words")
    return found


def analysed(language: Language, data: Path) -> list[str]:
    """Return the treebanks whose analyses a model may use: of its training text, or of other texts."""
    return [
        str(treebank(data / language.folder, "train") if name == "*" else data / name) for name in language.treebanks
    ]


def prepare(language: Language, data: Path, out: Path, num_words: int) -> dict[str, list[str]]:
    """Write OUT/LANGUAGE/text, and return the lines of each split."""
    found = texts(language, data, num_words)
    place = out / language.name / "text"
    for split, lines in found.items():
        write_lines(place / f"{split}.txt", lines)
    return found


def row(name: str, found: dict[str, list[str]]) -> str:
    """Return the sizes of a language, as a line of Markdown."""
    words = {split: [word for line in lines for word in line.split()] for split, lines in found.items()}
    known = set(words["train"])
    unseen = (sum(word not in known for word in words[split]) / len(words[split]) for split in ("valid", "test"))
    sizes = " | ".join(f"{len(words[split]):,}" for split in SPLITS)
    return f"| {name} | {sizes} | {len(known):,} | {' | '.join(f'{share:.1%}' for share in unseen)} |"


HEAD = (
    "| language | tokens: train | valid | test | types | valid: tokens that train lacks | test |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)


def chosen(names: Sequence[str]) -> list[Language]:
    """Return the languages of these names, or all without names. Raises OptionError."""
    for name in names:
        if name not in LANGUAGES:
            raise OptionError(f"there is no language {name!r} here; there are: {', '.join(LANGUAGES)}")
    return [LANGUAGES[name] for name in names or LANGUAGES]
