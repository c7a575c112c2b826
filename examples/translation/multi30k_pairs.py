"""The language pairs of Multi30k: English, a target language, and the lexical resources of the target's words."""

import json
import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import whole_file


@dataclass(frozen=True)
class Pair:
    """English and a target language, with the lexical resources of the target's words."""

    target: str
    lexicons: tuple[str, ...]  # names of files: treebanks (.conllu.gz), else form, lemma, UPOS, FEATS with tabs
    packages: bool = False  # whether packages are asked, too (llrnn prior --language)

    @property
    def languages(self) -> tuple[str, str]:
        return "en", self.target

    @property
    def knowledge(self) -> str:
        """Options of `llrnn prior` for the target's words."""
        treebanks = [name for name in self.lexicons if name.endswith((".conllu", ".conllu.gz"))]
        lexicons = [name for name in self.lexicons if name not in treebanks]
        options = ["--conllu", *treebanks] if treebanks else []
        options += ["--lexicon", *lexicons] if lexicons else []
        options += ["--language", self.target] if self.packages else []
        return shlex.join(options)

    @property
    def all_sources(self) -> str:
        """Options of `llrnn prior` and `llrnn dictionary` that always use packages."""
        return replace(self, packages=True).knowledge

    @property
    def lexicon(self) -> str | None:
        """The file with which `llrnn report` measures agreement."""
        return next((name for name in self.lexicons if ".tsv" in name), None)

    @classmethod
    def of(cls, out: Path) -> "Pair":
        """Return the pair that a folder was prepared for (default: French)."""
        path = out / "pair.json"
        if not path.exists():
            return PAIRS["fr"].copied()
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            return cls(str(read["target"]), tuple(map(str, read["lexicons"])), bool(read["packages"]))
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}: expected target, lexicons and packages; `prepare` into another folder") from None

    def copied(self) -> "Pair":
        """Return the pair with its files in OUT."""
        return replace(self, lexicons=tuple(Path(name).name for name in self.lexicons))

    def write(self, out: Path) -> None:
        with whole_file(out / "pair.json") as file:
            file.write(json.dumps(asdict(self)) + "\n")


# Files below the folder that holds --data, as this project's shared data have them.
TREEBANKS = ("cac-ud-dev", "cac-ud-test", "fictree-ud-dev", "fictree-ud-test", "pud-ud-test")
PAIRS = {
    "fr": Pair("fr", ("ud-french-gsd-1.4/lexicon.tsv.gz",)),
    "cs": Pair("cs", tuple(f"czech-treebanks/cs_{name}.conllu.gz" for name in TREEBANKS), packages=True),
    "de": Pair("de", (), packages=True),
}
