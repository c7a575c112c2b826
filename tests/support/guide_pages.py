"""What readers run: the marked blocks of README.md and docs/guides, and the page that each page continues.

A block is run if the line before it is `<!-- run -->`, and is a file of that name where it is `<!-- file NAME -->`.
Other blocks need data or output that is not in the repository.
"""

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toy_french import make_corpus, write_corpus
from toy_french.bilingual import make_bitext, write_bitext

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
SYSTEMS = sorted((*ROOT.glob("fairseq_llrnn/systems/*"), *ROOT.glob("research/llrnn_research/*")))
BLOCK = re.compile(r"^<!-- run -->\n```(bash|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"^<!-- file (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:^|[|&;(]|\bdo)\s*(?:\w+=\S+ )*(?:llrnn|fairseq-[\w-]+) ")
CONTINUES = re.compile(
    r"^This page (?:goes on|continues) with the files of\s+(?:the )?\[[^]]+\]\(([^)#]+)", re.MULTILINE
)

OF_CORPUS = ("train.txt", "valid.txt", "test.txt", "train.conllu", "test.conllu")
OF_BITEXT = (
    *(f"{part}.{language}" for part in ("train", "valid", "test") for language in ("en", "fr")),
    "lexicon.tsv",
    "test.facts.jsonl",
)

# What takes a reader an hour takes the test a moment: patterns, and what takes their place.
SHORTENED = {
    r"--max-epoch \d+": "--max-epoch 1 --max-update 3",
    r"(llrnn train [\w-]+)$": r"\1 --max-epoch 1 --max-update 3",
    r"--max-len-b 50": "--max-len-b 9",
    r"max_steps=\d+": "max_steps=3",
    r"range\(0, len\(([^()]+)\), 50\)": r"range(0, min(100, len(\1)), 50)",  # batches of a loop of one's own
    r"--rate 1e-4 3e-4 1e-3 --decay 0 1e-3 1e-2": "--rate 1e-4 --decay 0 1e-3",
    r"llrnn dynamic-evaluation (\w+\.txt)": r"head -n 30 \1 > few.txt; llrnn dynamic-evaluation few.txt",
    r"--beam 10 --nbest 10": "--beam 3 --nbest 3",
    r"256": "32",
}


@dataclass(frozen=True)
class Page:
    """A page of documentation.

    Attributes:
        path: the Markdown file.
        blocks: (language, text) of each block to run, in order; `bash` or `python`.
        continues: the page whose files this one needs, or None.
        files: what readers have before they run anything, by name.
    """

    path: Path
    blocks: tuple[tuple[str, str], ...]
    continues: Path | None
    files: dict[str, str]


def read_page(path: Path) -> Page:
    """The page in a file, its trainings and networks made small, but for those of README.md."""
    text = path.read_text(encoding="utf-8")
    found = CONTINUES.search(text)
    found_blocks = BLOCK.findall(text)  # those of README.md run as they stand
    blocks = tuple((language, block if path == README else shortened(block)) for language, block in found_blocks)
    return Page(path, blocks, (path.parent / found[1]).resolve() if found else None, dict(FILE.findall(text)))


def shortened(block: str) -> str:
    """The block with continued lines joined, and smaller numbers."""
    block = re.sub(r" \\\n +", " ", block)
    for long, short in SHORTENED.items():
        block = re.sub(long, short, block, flags=re.MULTILINE)
    return block


def pages_to_run() -> list[Page]:
    """README.md and the guides that have blocks to run."""
    folders = ROOT / "docs" / "guides", ROOT / "docs" / "tutorials"
    guides = [page for folder in folders for page in folder.glob("*.md")]
    guides += [page for system in SYSTEMS for page in system.glob("README.md")]
    pages = (read_page(path) for path in (README, *sorted(guides)))
    return [page for page in pages if page.blocks]


def reader_folder(place: Path, scratch: Path, sentences: int = 200) -> Path:
    """Put into `place` what a reader has: a tokenised text with its treebank, and a tokenised bitext."""
    write_corpus(make_corpus(sentences, 1), scratch / "corpus")
    write_bitext(make_bitext(200, 1), scratch / "bitext")
    for folder, names in (("corpus", OF_CORPUS), ("bitext", OF_BITEXT)):
        for name in names:
            shutil.copyfile(scratch / folder / name, place / name)
    shutil.copyfile(scratch / "corpus" / "valid.conllu", place / "dev.conllu")
    return place


def command_lines(block: str) -> Iterator[list[str]]:
    """The words of each command of `llrnn` or fairseq in a script of bash, perhaps with its output."""
    for line in filter(COMMAND.search, block.replace("\\\n", " ").splitlines()):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split = True
        words: list[str] = []
        for token in (*lexer, ";"):
            if set(token) <= set("|&;<>()"):
                if words and (words[0] == "llrnn" or words[0].startswith("fairseq-")):
                    yield words
                words = []
            elif words or not re.match(r"\w+=", token):
                words.append(token)
