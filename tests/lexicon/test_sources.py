"""A reader of words, of this package or another one, is in options, help, pages, origins and pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from shell import Shell

from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.lexicon import merge_sources
from fairseq_llrnn.lexicon.lexicon_table import ReadRequest, Row, as_features
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import SOURCES, Source
from fairseq_llrnn.prior import Prior, Recipe
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.settings import keys

PIECES = (*SPECIALS, "▁ch", "at", "▁mer")
READERS_BLOCK = re.compile(r"cat > our-package/word_tags\.py <<'EOF'\n(.*?)\nEOF\n", re.S)


def features_of(prior: Prior, symbol: str) -> set[str]:
    return {*prior.output.features.row(int(prior.output.class_of[prior.symbols.index(symbol)]))}


@pytest.mark.parametrize("name", SOURCES)
def test_each_reader_has_an_option_and_a_page(name: str, root: Path) -> None:
    assert name in {field.name for field in fields(LexiconOptions)}, f"lexicon/options.py lacks {name}"
    (key,) = (key for key in keys(Recipe) if key.name == f"words.{name}")
    assert key.doc and key.is_path, f"lexicon/options.py: {name} needs a Doc, and a type with paths"
    in_recipe = key.name if key.option is None else key.option.name
    for page, option in (("llrnn-lexicon.md", f"--{name}"), ("llrnn-prior.md", in_recipe)):
        assert f"`{option}`" in (root / "docs" / "options" / page).read_text(encoding="utf-8"), f"{page} lacks {option}"


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.has_features])
def test_each_reader_gives_features_to_words_and_pieces(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made-up reader in the place of each."""
    place, text = tmp_path / "words", tmp_path / "text"
    place.write_text("content\n", encoding="utf-8")
    text.write_text("▁ch at ▁mer\n", encoding="utf-8")

    def rows(place: str, request: ReadRequest) -> Iterator[tuple[Row, int]]:
        yield Row("chat", features=as_features(["Tag:animal"]), source=name), 1

    monkeypatch.setitem(SOURCES, name, SOURCES[name]._replace(read=rows))  # type: ignore[arg-type]
    monkeypatch.setattr(LexiconOptions, "check", lambda self, option_name=str: None)
    monkeypatch.setattr("fairseq_llrnn.prior.origins.find_analyser", lambda place: place)
    words = LexiconOptions(**{name: str(place)})  # type: ignore[arg-type]
    whole = build_prior([*SPECIALS, "chat", "mer"], Recipe(words=words, top_words=0))
    assert "Tag:animal" in features_of(whole, "chat") and "Tag:animal" not in features_of(whole, "mer")
    assert any(" words " in source and name in source for source in whole.settings["sources"]), "not in origins"
    pieces = build_prior(PIECES, Recipe(words=words, top_words=0, text=text, pieces="sentencepiece"))
    assert "Tag:animal" in features_of(pieces, "at") and "Tag:animal" in features_of(pieces, "▁ch")
    assert "Tag:animal" not in features_of(pieces, "▁mer")


def test_a_new_row_is_read_with_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the row and the option names a reader."""

    def rows(place: str, request: ReadRequest) -> Iterator[tuple[Row, int]]:
        yield Row(place, features=as_features(["Tag:new"])), 1

    monkeypatch.setitem(SOURCES, "tags", Source(rows))  # type: ignore[arg-type]
    monkeypatch.setattr(LexiconOptions, "tags", "chat", raising=False)
    assert [row.form for row in merge_sources.gather(LexiconOptions()).rows] == ["chat"]


@pytest.fixture
def package(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reader of docs/guides/extending.md, installed."""
    guide = (root / "docs" / "guides" / "extending.md").read_text(encoding="utf-8")
    (module,) = READERS_BLOCK.findall(guide)
    place = tmp_path / "site-packages"
    (place / "word_tags-1.0.dist-info").mkdir(parents=True)
    (place / "word_tags.py").write_text(module, encoding="utf-8")
    metadata = place / "word_tags-1.0.dist-info"
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: word-tags\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(
        "[fairseq_llrnn.readers]\ntags = word_tags:read_tags\n", encoding="utf-8"
    )
    (tmp_path / "tags.txt").write_text("chat|animal\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    return place


def test_the_guide_s_reader_is_in_origins_and_pieces(package: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("▁ch at ▁mer\n", encoding="utf-8")
    words = LexiconOptions(lexicon=f"tags:{tmp_path / 'tags.txt'}")
    whole = build_prior([*SPECIALS, "chat", "mer"], Recipe(words=words, top_words=0))
    assert "Tag:animal" in features_of(whole, "chat")
    assert any(source.startswith("--lexicon tags:tags.txt ") for source in whole.settings["sources"])
    pieces = build_prior(PIECES, Recipe(words=words, top_words=0, text=tmp_path / "text", pieces="sentencepiece"))
    assert "Tag:animal" in features_of(pieces, "at")


@pytest.mark.parametrize("command", ["prior", "lexicon"])
def test_the_guide_s_reader_is_in_help(command: str, package: Path, shell: Shell) -> None:
    shown = shell.run("llrnn", command, "--help", variables={"PYTHONPATH": str(package)}).out
    assert "Readers: tags" in " ".join(shown.split())
    assert "Readers:" not in shell.run("llrnn", command, "--help").out


def test_pages_name_readers_of_other_packages(root: Path) -> None:
    for command in ("prior", "lexicon", "dictionary"):
        page = root / "docs" / "options" / f"llrnn-{command}.md"
        assert "NAME:FILE for a reader of another package" in page.read_text(encoding="utf-8"), page.name
