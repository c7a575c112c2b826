"""The prior: features, signatures, b₀ and parts, saved as one directory of plain arrays and JSON.

Sizes: V words, U source words.

    prior.json       format, version, settings, counts, feature names, hashes, and the parts in order
    dictionary.txt   the V symbols of its dictionary, one per line, in fairseq's order
    arrays.npz       plain numeric arrays (files/array_file.py), mapped when read; a part's arrays begin with its name
    source.txt       the U symbols of the source language, only if some part belongs to them
    recipe.toml      the settings that it was built from, to build it again (`llrnn prior --recipe`)
    NAME/            files of the part NAME, if it has any (those of a frozen model)

The same input gives the same bytes. A prior belongs to one dictionary. Loading it with another is an error.

A prior itself never changes. Its `Session` grows while it is used: ids of strings outside its dictionaries, and
tables over them. Data, models and searches of one prior share one session, so that a string has the same id for
all of them. Ids live as long as the session.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairseq_llrnn.errors import PriorError, need_library
from fairseq_llrnn.features.dictionary import hash_symbols
from fairseq_llrnn.features.feature_table import NOT_TOP, SPECIAL, TOP_FORM, Signatures
from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.prior.arrays import check_log_weights, check_total, read_array, read_signatures
from fairseq_llrnn.prior.directory import (
    FINGERPRINT,
    REBUILD,
    SOURCE_HASH,
    SavedPrior,
    check_symbols,
    read_directory,
    unsound,
    write_directory,
)
from fairseq_llrnn.prior.expression import Atom, Expression, atoms, combine, describe, described, required, with_atoms
from fairseq_llrnn.prior.model_files import LoadModel
from fairseq_llrnn.prior.part import BuildContext, Part, SavedPart, Session, Translations, names_of, part_class
from fairseq_llrnn.version import __version__

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from fairseq_llrnn.backgrounds.background import Background
    from fairseq_llrnn.evidence.evidence_table import EvidenceTable
    from fairseq_llrnn.open_vocabulary.open_table import OpenTable
    from fairseq_llrnn.prior.recipe import Recipe


PartType = TypeVar("PartType", bound=Part)
OF_WORDS = (NOT_TOP, SPECIAL, TOP_FORM)  # groups of features that every prior has


@dataclass(frozen=True, repr=False)
class Prior:
    """Features, signatures, background and parts, which are fixed before training."""

    symbols: tuple[str, ...]  # V
    output: Signatures  # φ
    input: Signatures  # ψ; the same object as `output` if ψ = φ
    log_weights: np.ndarray  # (V,) float64, log b₀(x) in nats; −inf forbids
    settings: Mapping[str, Any]
    source_symbols: tuple[str, ...] = ()  # U; () if no part uses the source language
    parts: tuple[Part, ...] = ()  # each wraps the background of those before it
    expression: Expression | None = None  # combination of the parts with a background of their own, if several
    folder: str | None = field(default=None, compare=False, repr=False)  # that it was read from
    recipe: Recipe | None = field(default=None, compare=False, repr=False)  # if it was built in this process

    # ---- parts --------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The names of the parts: their kinds, and `kind.2` for the second one of a kind."""
        return names_of([part.kind for part in self.parts])

    @property
    def by_name(self) -> dict[str, Part]:
        """The parts by name, in their order."""
        return dict(zip(self.names, self.parts, strict=True))

    @property
    def bases(self) -> dict[str, Part]:
        """The parts with a background of their own, by name."""
        return {name: part for name, part in self.by_name.items() if part.is_base}

    def find(self, part: type[PartType]) -> PartType | None:
        """Return the first part of that class, or None."""
        return next((candidate for candidate in self.parts if isinstance(candidate, part)), None)

    def _of_kind(self, kind: str) -> Any:
        """Return the first part of that kind, or None. In contrast to `find`, it imports no class of parts."""
        return next((part for part in self.parts if part.kind == kind), None)

    @property
    def required(self) -> list[Part]:
        """The parts that must allow a word for it to be possible: all outside of mixtures."""
        if self.expression is None:
            return list(self.parts)
        inside = {atom.part for atom in atoms(self.expression)} - {atom.part for atom in required(self.expression)}
        return [part for name, part in self.by_name.items() if name not in inside]

    @property
    def translations(self) -> Translations | None:
        """The translations of source words, or None."""
        return self._of_kind("lexical")

    @property
    def offered_kinds(self) -> tuple[str, ...]:
        """The kinds of strings that source tokens offer, or () if they offer none."""
        return () if (evidence := self._of_kind("evidence")) is None else evidence.rules.kinds

    def offers(self, max_slots: int | None = None) -> EvidenceTable | None:
        """Return the strings that source tokens offer, the one table of this prior's session, or None.

        Args:
            max_slots: setting of the table, used at the first call (prior/parts/evidence_part.py).
        """
        return None if (evidence := self._of_kind("evidence")) is None else evidence.offers(self, max_slots)

    @property
    def has_source_strings(self) -> bool:
        """Whether strings of a source may be words of its translation."""
        return any(part.has_source_strings for part in self.parts)

    def source_index(self, word: str) -> int | None:
        """Return the number of a source word in this prior's session, or None if it is <unk> to all parts."""
        index = self.session.source.word_index.get(word)
        for part in self.parts if index is None else ():
            if (index := part.source_index(self, word)) is not None:
                break
        return index

    @property
    def open_words(self) -> OpenTable | None:
        """The words outside the dictionary seen so far, the one table of this prior, or None without open classes."""
        return None if (part := self._of_kind("open_vocabulary")) is None else part.open_words(self)

    def with_part(self, part: Part, source_symbols: tuple[str, ...] | None = None) -> Prior:
        """Return the prior with one more part at the end. A part that `is_base` is put before those that wrap others.

        φ gets the part's features at its end.

        Args:
            source_symbols: U, if the part brings them.
        """
        output = self.output.with_names(part.feature_names)
        source = self.source_symbols if source_symbols is None else source_symbols
        place = sum(other.is_base for other in self.parts) if part.is_base else len(self.parts)
        input_signatures = output if self.input is self.output else self.input
        parts = (*self.parts[:place], part, *self.parts[place:])
        return replace(self, output=output, input=input_signatures, parts=parts, source_symbols=source)

    def without(self, part: type[Part]) -> Prior:
        """Return the prior without the parts of that class."""
        return replace(self, parts=tuple(other for other in self.parts if not isinstance(other, part)))

    # ---- contents -----------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        parts = "".join(f", {type(part).__name__}" for part in self.parts)
        return f"Prior({len(self.symbols):,} words, {len(self.output.features.names):,} features{parts})"

    @property
    def allowed(self) -> np.ndarray:
        """The words with weight in b₀: (V,) bool."""
        return np.isfinite(self.log_weights)

    def index(self, symbol: str) -> int:
        """Return the number of a symbol of the dictionary."""
        return self.symbols.index(symbol)

    def background(self, has_source: bool = True) -> Background:
        """Return the background over the output signatures, in float32.

        Args:
            has_source: whether sentences come with a source. Without one there is no evidence and nothing to copy.

        Raises:
            PriorError: several parts have a background of their own, and no expression combines them.
        """
        from fairseq_llrnn.backgrounds.background import StaticBackground

        context = BuildContext(self, has_source)
        background: Background = StaticBackground(context.class_of, context.num_classes, context.log_weights)
        bases = self.bases
        if self.expression is not None:
            root = background
            background = combine(self.expression, lambda name: bases[name].background(root, context))
        elif len(bases) > 1:
            raise PriorError(f"the prior has the backgrounds {', '.join(bases)}, and no expression that combines them")
        for part in self.parts:
            if not (part.is_base and self.expression is not None):
                background = part.background(background, context)
        return background.float()

    @cached_property
    def session(self) -> Session:
        """The state that grows while this prior is used, shared by all users of this object."""
        return Session(self.symbols, self.source_symbols)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that a model's weights depend on: dictionary, features, signatures, background."""
        digest = hashlib.sha256(hash_symbols(self.symbols).encode())
        _add_arrays(digest, self._base_arrays())
        digest.update("\n".join((*self.output.features.names, "", *self.input.features.names)).encode())
        for name, part in self.by_name.items():
            source = hash_symbols(self.source_symbols) if part.needs_source else ""
            digest.update(f"{name} {source} {part.identity}".encode())
            _add_arrays(digest, part.arrays())
        if self.expression is not None:
            digest.update(repr(with_atoms(self.expression, lambda atom: Atom("", atom.part))).encode())
        return digest.hexdigest()

    @property
    def has_labels(self) -> bool:
        """Whether its words are labels of texts."""
        return bool(self.settings.get("labels"))

    @cached_property
    def signature(self) -> str:
        """Return a line of at most 120 characters that identifies the prior next to a score.

            llrnn:0.2.0|features:Gender,POS|background:ngram:3|lexicon:1f2e3d4c|dict:0a1b2c3d|prior:9c8b7a6f

        `lexicon` is a hash of the sources, `dict` of the dictionary, `prior` of everything.
        """
        groups = {feature_group(name) for name in self.output.features.names} - set(OF_WORDS)
        sources = "\n".join(map(str, self.settings.get("sources", ())))
        facts = {
            "llrnn": __version__,
            "features": _shorten(",".join(sorted(groups))) or "none",
            "background": _shorten(str(self.settings.get("background", "unknown"))),
            "lexicon": hashlib.sha256(sources.encode()).hexdigest()[:8] if sources else "none",
            "dict": hash_symbols(self.symbols)[:8],
            "prior": self.fingerprint[:8],
        }
        return "|".join(f"{name}:{''.join(_replace_special(char) for char in value)}" for name, value in facts.items())

    def counts(self) -> dict[str, int]:
        """Return sizes for the user. Those of a second part of a kind contain its name."""
        counts = {
            "words": len(self.symbols),
            "output features": self.output.features.num_features,
            "output signatures": self.output.num_classes,
            "forbidden words": int(np.isneginf(self.log_weights).sum()),
        }
        if self.input is not self.output:
            counts["input features"] = self.input.features.num_features
            counts["input signatures"] = self.input.num_classes
        for name, part in self.by_name.items():
            sizes = part.counts()
            counts |= sizes if name == part.kind else {f"{size} of {name}": number for size, number in sizes.items()}
        return counts

    def tokenizer(self, add_eos_token: bool = False) -> PreTrainedTokenizerFast:
        """Return a fast tokenizer of transformers over the symbols, with the ids of `LogLinearHead.encode`.

        Tokens are separated by blanks, also if the prior is over subword pieces. Unknown tokens are `<unk>`. `</s>`
        is the first token, as in training. It is the end of a sentence as well, and one inside of a word is a token.

        Args:
            add_eos_token: whether `</s>` is also put after the last word, as training needs it. Prompts need none.

        Raises:
            OptionError: transformers is not installed.
        """
        need_library("Prior.tokenizer", "transformers", "hf")
        from fairseq_llrnn.tokenizer import word_tokenizer

        return word_tokenizer(self.symbols, add_eos_token)

    def check_dictionary(self, symbols: Sequence[str], where: str, advice: str | None = None) -> None:
        """Raise PriorError unless the prior was built for exactly these symbols in this order.

        Args:
            where: the dictionary's name in the error.
            advice: how to fix it, unless by building the prior again.
        """
        problem = f"the prior was made for another dictionary than {where}"
        check_symbols(symbols, self.symbols, problem, advice or f"{REBUILD} --dict {where}")

    def check_source_dictionary(self, symbols: Sequence[str], where: str, advice: str | None = None) -> None:
        """Raise PriorError unless the source symbols are the prior's, if it has any. Arguments as in
        `check_dictionary`.
        """
        part = next((part for part in self.parts if part.needs_source), None)
        if part is not None:
            problem = f"the prior's {part.subject} made for another source dictionary than {where}"
            translated = f"--lexical-translation {Path(where).parent}"
            option = f"--set source_dictionary={where}" if self.translations is None else translated
            check_symbols(symbols, self.source_symbols, problem, advice or f"{REBUILD} {option}")

    # ---- on disk ------------------------------------------------------------------------------------------------

    def _base_arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays but those of parts."""
        arrays = {"log_weights": self.log_weights}
        sides = {"output": self.output} if self.input is self.output else {"output": self.output, "input": self.input}
        for side, signatures in sides.items():
            arrays[f"{side}_class_of"] = signatures.class_of
            arrays[f"{side}_offsets"] = signatures.features.offsets
            arrays[f"{side}_indices"] = signatures.features.indices
            arrays[f"{side}_values"] = signatures.features.values
        return arrays

    def save(self, directory: Path | str) -> None:
        """Write the directory under a temporary name next to it, then rename it: a prior is never half-written.

        Raises:
            PriorError: the place exists and is no prior, or cannot be written.
        """
        arrays = self._base_arrays()
        for name, part in self.by_name.items():
            arrays |= {f"{name}/{key}": array for key, array in part.arrays().items()}
        source = {SOURCE_HASH: hash_symbols(self.source_symbols)} if self.source_symbols else {}
        description = {
            "settings": dict(self.settings),
            "counts": self.counts(),
            "dictionary_sha256": hash_symbols(self.symbols),
            **source,
            FINGERPRINT: self.fingerprint,
            "output_features": list(self.output.features.names),
            "input_features": None if self.input is self.output else list(self.input.features.names),
            "parts": [{"part": name, **part.description()} for name, part in self.by_name.items()],
        }
        if self.expression is not None:
            description["background"] = describe(self.expression)
        saved = SavedPrior(description, self.symbols, self.source_symbols, arrays, self.recipe_text(directory))
        write_directory(Path(directory), saved, self.by_name)

    def recipe_text(self, directory: Path | str | None = None) -> str:
        """Return the recipe of the prior as TOML (prior/recipe_file.py), or "" if it is unknown.

        Args:
            directory: the folder that its paths are relative to (None: the one that the prior was read from).
        """
        if self.recipe is None and self.folder is None:
            return ""
        from fairseq_llrnn.prior.recipe_file import kept_recipe

        return kept_recipe(self.recipe, self.folder, directory)

    @classmethod
    def load(cls, directory: Path | str, load_model: LoadModel | None = None) -> Prior:
        """Read a prior. Nothing in it is executed.

        Args:
            load_model: builds another trained model, if the background has one. Core code cannot.

        Raises:
            PriorError: there is no prior, it has another version, a file is truncated or changed, or a part is not
                registered.
        """
        directory = Path(directory)
        saved = read_directory(directory)
        with unsound(directory):
            prior = cls._of_signatures(saved, str(directory))
            entries = saved.description["parts"]
            classes = [part_class(entry["part"]) for entry in entries]
            if [entry["part"] for entry in entries] != names_of([part.kind for part in classes]):
                raise ValueError("its parts have other names than expected")
            if sorted(classes, key=lambda part: not part.is_base) != classes:
                raise ValueError("its parts are not in order: those with a background of their own come first")
            if any(part.needs_source for part in classes) and not saved.source_symbols:
                raise ValueError("some of its parts need source words, and it has none")
            for part, entry in zip(classes, entries, strict=True):
                name = entry["part"]
                fields = {key: value for key, value in entry.items() if key != "part"}
                part_saved = SavedPart(fields, saved.arrays_of(name), directory / name, prior, load_model)
                read = part.read(part_saved)
                if missing := set(read.feature_names) - prior.output.features.index.keys():
                    raise ValueError(f"the {name} has no feature {', '.join(sorted(missing))}")
                prior = prior.with_part(read)
            if "background" not in saved.description:
                return prior
            return replace(prior, expression=described(saved.description["background"], list(prior.bases)))

    @classmethod
    def _of_signatures(cls, saved: SavedPrior, folder: str) -> Prior:
        """Return the prior without parts. Raises PriorError, ValueError, KeyError or TypeError for unsound arrays."""
        description, arrays, size = saved.description, saved.arrays, len(saved.symbols)
        output = read_signatures(arrays, "output", description["output_features"])
        names = description["input_features"]
        inputs = output if names is None else read_signatures(arrays, "input", names)
        weights = read_array(arrays, "log_weights", np.float64)
        if {len(weights), output.num_words, inputs.num_words} != {size}:
            raise PriorError(f"{folder}: its arrays and its dictionary differ in size; {REBUILD}")
        check_log_weights(weights, size)
        check_total(weights)
        return cls(saved.symbols, output, inputs, weights, description["settings"], saved.source_symbols, folder=folder)


def _shorten(text: str, width: int = 20) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _replace_special(char: str) -> str:
    """Return a character for a signature: blanks and bars become `_`."""
    return "_" if char.isspace() or char == "|" or not char.isprintable() else char


def _add_arrays(digest: Any, arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).data)
