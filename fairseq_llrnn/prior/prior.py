"""The prior: features, signatures and background as one directory on disk.

    prior.json       format, version, settings, counts, feature names, hashes: for people and for checks
    dictionary.txt   the V symbols it was made for, one a line, in fairseq's order
    arrays.npz       plain numeric arrays (numpy, read with allow_pickle=False)
    source.txt       the U symbols of the source language, only where the prior knows something of it: lexical
                     translations, evidence
    model/           the files of another trained model, only where that is the background (model_files.py)

The same input gives the same bytes. A prior belongs to one dictionary; loading it with another is an error.
Sizes: V words, S output signatures, R input signatures, F output features, G input features, U source words.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairseq_llrnn.alignment.translation_table import LexicalTranslation, is_word, speaks
from fairseq_llrnn.backgrounds.automaton import AutomatonBackground
from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.copied_words import CopiedWords, target_symbols
from fairseq_llrnn.backgrounds.language_model import ModelBackground
from fairseq_llrnn.backgrounds.lexical import LexicalBackground
from fairseq_llrnn.backgrounds.static import StaticBackground
from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.evidence.background import EvidenceBackground
from fairseq_llrnn.evidence.features import check_slot_features
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.evidence.table import EvidenceTable, OpenWords
from fairseq_llrnn.features.dictionary import EOS, PAD, UNK, hash_symbols
from fairseq_llrnn.features.signatures import Signatures
from fairseq_llrnn.open_vocabulary.table import OpenTable
from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary, read_open_vocabulary
from fairseq_llrnn.prior.arrays import read_array, read_lexical, read_signatures
from fairseq_llrnn.prior.automaton import PriorAutomaton, read_prior_automaton
from fairseq_llrnn.prior.directory import (
    ARRAYS_FILE,
    SOURCE_FILE,
    WORDS_FILE,
    check_symbols,
    holds_nothing_else,
    read_words,
    swap,
    write_words,
)
from fairseq_llrnn.prior.manifest import (
    FORMAT,
    REBUILD,
    SOURCE_HASH,
    SOURCE_PARTS,
    VERSION,
    check_source_hash,
    read_description,
)
from fairseq_llrnn.prior.manifest import JSON_FILE as JSON_FILE  # for whoever looks for a prior
from fairseq_llrnn.prior.model_files import LoadModel, ModelFiles


@dataclass(frozen=True)
class Prior:
    """Everything that is known before training."""

    symbols: tuple[str, ...]  # V
    output: Signatures  # φ
    input: Signatures  # ψ; the same object as `output` where ψ = φ
    log_weights: np.ndarray  # (V,) float64, log b(x); −inf forbids
    settings: Mapping[str, Any]
    source_symbols: tuple[str, ...] = ()  # U; () where nothing is known of the source language
    lexical: LexicalTranslation | None = None
    evidence: EvidenceRules | None = None
    automaton: PriorAutomaton | None = None  # over log_weights, which are its root; None: b(x) is the same everywhere
    open_vocabulary: OpenVocabulary | None = None
    model: ModelFiles | None = None  # whose probabilities are b(K, x), for the words that log_weights allow
    load_model: LoadModel | None = field(default=None, compare=False, repr=False)  # who can build it
    folder: str | None = field(default=None, compare=False, repr=False)  # where it was read

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that a model's weights depend on: dictionary, features, signatures, background."""
        digest = hashlib.sha256(hash_symbols(self.symbols).encode())
        for name, array in self._arrays().items():
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update("\n".join((*self.output.features.names, "", *self.input.features.names)).encode())
        if self.lexical is not None:
            digest.update(f"{hash_symbols(self.source_symbols)} {self.lexical.identity}".encode())
        if self.evidence is not None:
            digest.update(f"evidence {hash_symbols(self.source_symbols)} {self.evidence.identity}".encode())
        if self.copies:
            digest.update(f"copies {hash_symbols(self.source_symbols)}".encode())
        if self.model is not None:
            digest.update(f"model {self.model.identity}".encode())
        return digest.hexdigest()

    @property
    def copies(self) -> bool:
        """Whether texts spelled in characters can hold the words of their source."""
        return self.automaton is not None and self.automaton.copies

    def background(self, has_source: bool = True) -> Background:
        """The background over the output signatures, in float32; without evidence where no source can offer it."""
        background = self._background_without_evidence()
        if self.copies and has_source and isinstance(background, AutomatonBackground):
            to_target = torch.tensor(target_symbols(self.source_symbols, self.symbols))
            background = CopiedWords(background, to_target)
        if self.evidence is None or not has_source:
            return background
        pad, unk = self.symbols.index(PAD), self.symbols.index(UNK)
        return EvidenceBackground(background, self.evidence_table, pad, unk, self.source_symbols.index(UNK))

    @cached_property
    def evidence_table(self) -> EvidenceTable:
        """What source tokens offer. The one table of this prior: an unknown string has one id for all who ask."""
        return EvidenceTable(self)

    @cached_property
    def open_table(self) -> OpenTable | None:
        """The words outside the dictionary that were met: the one table of this prior; None without open classes."""
        if self.open_vocabulary is None:
            return None
        words = OpenWords(self.symbols) if self.evidence is None else self.evidence_table.target
        return OpenTable(self.open_vocabulary, words)

    def _background_without_evidence(self) -> Background:
        class_of, weights = torch.from_numpy(self.output.class_of.copy()), torch.from_numpy(self.log_weights.copy())
        if self.automaton is not None:
            known_words = self.automaton.automaton
            return AutomatonBackground(class_of, self.output.num_classes, weights, known_words).float()
        if self.model is not None:
            return self._model_background(self.model, class_of, weights)
        if self.lexical is None:
            return StaticBackground(class_of, self.output.num_classes, weights).float()
        words, counted = torch.from_numpy(is_word(self.symbols)), torch.from_numpy(speaks(self.source_symbols))
        known = self.lexical
        return LexicalBackground(
            class_of, self.output.num_classes, weights, known.table, words, counted, known.weight, known.learned
        ).float()

    def _model_background(self, files: ModelFiles, class_of: torch.Tensor, weights: torch.Tensor) -> ModelBackground:
        if self.load_model is None:
            raise PriorError(
                "the prior's background is a model, which only fairseq can build: use the prior in one of fairseq's "
                "commands, or in llrnn explain or rescore"
            )
        model = self.load_model(files, self.symbols, np.isfinite(self.log_weights))
        start, num_classes = self.symbols.index(EOS), self.output.num_classes
        return ModelBackground(
            class_of, num_classes, weights, start, model, files.weight, files.temperature
        ).float()

    def counts(self) -> dict[str, int]:
        """The sizes a reader wants to see."""
        counts = {
            "words": len(self.symbols),
            "output features": self.output.features.num_features,
            "output signatures": self.output.num_classes,
            "forbidden words": int(np.isneginf(self.log_weights).sum()),
        }
        if self.input is not self.output:
            counts["input features"] = self.input.features.num_features
            counts["input signatures"] = self.input.num_classes
        if self.lexical is not None:
            counts["source words"] = int((np.diff(self.lexical.table.offsets) > 0).sum())
            counts["translations"] = len(self.lexical.table.targets)
        if self.automaton is not None:
            counts |= self.automaton.counts()
        if self.open_vocabulary is not None:
            counts["open classes"] = len(self.open_vocabulary.names)
        return counts

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {"log_weights": self.log_weights}
        sides = {"output": self.output} if self.input is self.output else {"output": self.output, "input": self.input}
        for side, signatures in sides.items():
            arrays[f"{side}_class_of"] = signatures.class_of
            arrays[f"{side}_offsets"] = signatures.features.offsets
            arrays[f"{side}_indices"] = signatures.features.indices
            arrays[f"{side}_values"] = signatures.features.values
        if self.lexical is not None:
            table = self.lexical.table
            arrays["lexical_offsets"], arrays["lexical_targets"] = table.offsets, table.targets
            arrays["lexical_probabilities"], arrays["lexical_links"] = table.probabilities, table.links
        if self.automaton is not None:
            arrays |= self.automaton.arrays()
        return arrays if self.open_vocabulary is None else arrays | self.open_vocabulary.arrays()

    def save(self, directory: Path | str) -> None:
        """Write the directory: to a temporary name beside it, then renamed, so that no half-written prior stays behind.

        Raises:
            PriorError: the place exists and is no prior, or cannot be written.
        """
        directory = Path(directory).resolve()  # `.` has no name that a rename could take
        if directory.exists() and not holds_nothing_else(directory):
            raise PriorError(
                f"{directory}: expected a free name or an earlier prior, found something else there; give another --out"
            )
        temporary: Path | None = None
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
            self._write(temporary)
            temporary.chmod(0o755)
            swap(temporary, directory)
        except OSError as error:
            raise PriorError(
                f"{directory}: the prior cannot be written ({error.strerror or error}); "
                "check the rights and the free space there, or give another --out"
            ) from None
        finally:
            if temporary is not None and temporary.exists():
                shutil.rmtree(temporary, ignore_errors=True)

    def _write(self, directory: Path) -> None:
        packed = io.BytesIO()  # numpy's own file would complain a second time, and on stderr, where a disk is full
        np.savez(packed, **self._arrays())
        (directory / ARRAYS_FILE).write_bytes(packed.getvalue())
        write_words(directory / WORDS_FILE, self.symbols)
        if self.source_symbols:
            write_words(directory / SOURCE_FILE, self.source_symbols)
        description = {
            "format": FORMAT,
            "version": VERSION,
            "settings": dict(self.settings),
            "counts": self.counts(),
            "dictionary_sha256": hash_symbols(self.symbols),
            "arrays_sha256": hashlib.sha256((directory / ARRAYS_FILE).read_bytes()).hexdigest(),
            "output_features": list(self.output.features.names),
            "input_features": None if self.input is self.output else list(self.input.features.names),
        }
        for part, known in (("lexical", self.lexical), ("evidence", self.evidence)):
            if known is not None:
                description[part] = {**known.description(), SOURCE_HASH: hash_symbols(self.source_symbols)}
        if self.copies:
            description["copies"] = {SOURCE_HASH: hash_symbols(self.source_symbols)}
        if self.open_vocabulary is not None:
            description["open_vocabulary"] = self.open_vocabulary.description()
        if self.automaton is not None:
            description["automaton"] = self.automaton.description()
        if self.model is not None:
            description["model"] = self.model.description()
            self.model.write(directory)
        text = json.dumps(description, ensure_ascii=False, indent=1)
        (directory / JSON_FILE).write_text(text + "\n", encoding="utf-8", newline="\n")

    def check_dictionary(self, symbols: Sequence[str], where: str) -> None:
        """Raise PriorError unless the prior was made for exactly these symbols in this order."""
        problem = f"the prior was made for another dictionary than {where}"
        check_symbols(symbols, self.symbols, problem, f"--dict {where}")

    def check_source_dictionary(self, symbols: Sequence[str], where: str) -> None:
        """Raise PriorError where the prior knows of other source words than these, in this order."""
        parts = {"lexical": self.lexical is not None, "evidence": self.evidence is not None, "copies": self.copies}
        known = next((SOURCE_PARTS[part] for part, has in parts.items() if has), None)
        if known is None:
            return
        problem = f"the prior's {known} made for another source dictionary than {where}"
        option = f"--source-dict {where}" if self.lexical is None else f"--lexical-translation {Path(where).parent}"
        check_symbols(symbols, self.source_symbols, problem, option)


def load_prior(directory: Path | str, load_model: LoadModel | None = None) -> Prior:
    """Read a prior; nothing in it is executed.

    Args:
        load_model: who can build another trained model, should that be the background; core code cannot.

    Raises:
        PriorError: no prior there, another version, a truncated or changed file.
    """
    directory = Path(directory)
    description = read_description(directory)
    try:
        symbols = read_words(directory / WORDS_FILE)
        source_symbols = read_words(directory / SOURCE_FILE) if set(SOURCE_PARTS) & set(description) else ()
        raw = (directory / ARRAYS_FILE).read_bytes()
    except (OSError, UnicodeDecodeError) as error:
        raise PriorError(f"{directory}: a file of the prior cannot be read ({error}); {REBUILD}") from None
    if hash_symbols(symbols) != description["dictionary_sha256"]:
        raise PriorError(
            f"{directory / WORDS_FILE}: expected the words the prior was made for, found others; {REBUILD}"
        )
    if hashlib.sha256(raw).hexdigest() != description["arrays_sha256"]:
        raise PriorError(
            f"{directory / ARRAYS_FILE}: expected the arrays described in {JSON_FILE}, found {len(raw)} other bytes "
            f"(truncated or changed); copy it again or {REBUILD}"
        )
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
            output = read_signatures(arrays, "output", description["output_features"])
            same = description["input_features"] is None
            read = output if same else read_signatures(arrays, "input", description["input_features"])
            log_weights = read_array(arrays, "log_weights", np.float64)
            lexical = read_lexical(arrays, description["lexical"]) if "lexical" in description else None
            known = description.get("automaton")
            automaton = None if known is None else read_prior_automaton(arrays, known, log_weights)
            known = description.get("open_vocabulary")
            names = output.features.names
            opened = None if known is None else read_open_vocabulary(arrays, known, names, len(symbols))
    except (ValueError, KeyError, TypeError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise PriorError(f"{directory / ARRAYS_FILE}: not the arrays of a prior ({error}); {REBUILD}") from None
    if {len(symbols), len(log_weights), output.num_words, read.num_words} != {len(symbols)}:
        raise PriorError(f"{directory}: its arrays and its dictionary differ in size; {REBUILD}")
    if np.isnan(log_weights).any() or np.isposinf(log_weights).any() or np.isneginf(log_weights).all():
        raise PriorError(f"{directory}: expected weights of which some are positive and all are finite; {REBUILD}")
    try:
        if opened is not None and np.bincount(output.class_of)[output.class_of[symbols.index(UNK)]] > 1:
            raise ValueError("the open vocabulary needs <unk> alone in its signature")
        if automaton is not None and lexical is not None:
            raise ValueError("its background is an automaton and lexical translations at once")
        if automaton is not None and automaton.copies and ("copies" not in description or "evidence" in description):
            raise ValueError("the words to copy are described without their source, or beside evidence")
        model = ModelFiles.described(description["model"], directory) if "model" in description else None
        if model is not None and (automaton is not None or lexical is not None):
            raise ValueError("its background is a model and something else at once")
        evidence = EvidenceRules.described(description["evidence"]) if "evidence" in description else None
        check_source_hash(description, hash_symbols(source_symbols))
        if lexical is not None:
            lexical.check(is_word(source_symbols), is_word(symbols) & np.isfinite(log_weights))
        if evidence is not None:
            check_slot_features(evidence, output.features.names)
            alone = np.bincount(output.class_of)[output.class_of[[symbols.index(PAD), symbols.index(UNK)]]]
            if (alone > 1).any():
                raise ValueError("the evidence needs <pad> and <unk> alone in their signatures")
            if UNK not in source_symbols:
                raise ValueError(f"the source words of the evidence lack {UNK}")
    except (ValueError, OSError) as error:
        raise PriorError(f"{directory}: {error}; {REBUILD}") from None
    settings = description["settings"]
    return Prior(
        symbols, output, read, log_weights, settings, source_symbols, lexical, evidence, automaton, opened, model,
        load_model, str(directory),
    )  # fmt: skip
