"""A tiny world for evidence: translation_world's language with numbers, names, mapped strings and unknown words in it.

The source spells every word backwards, but for evidence: numbers and names stay, `1,000` becomes `1 000` and `kph`
becomes `kilomètres heure`. In the training text all words are known. Other texts also have numbers, names and words
that no dictionary has, and words of the target that nothing in the source offers.
"""

from __future__ import annotations

import functools
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from shell import Result, Shell
from tiny_world import EVERY_SENTENCE, USER_DIR, Setting, World, build, every_word_once, randomise, sentences
from torch import Tensor
from translation_world import SIZES, TRAINING

from fairseq_llrnn.prior.prior import Prior

MAPPED = {"1,000": "1 000", "kph": "kilomètres heure"}
KNOWN = ["12", "7", "45", "300", "Ann", "Bob", "Eva", *MAPPED]
UNKNOWN = ["4711", "88", "1.234", "Zoé", "Karim", "Ngugi", "quark"]
NOT_OFFERED = "inconnu"  # the source spells it backwards like any other word
SPLITS = {"train": 110, "valid": 21, "test": 18}


def source_of(word: str) -> str:
    """What the source has for a word of the target, if it is no evidence."""
    return word[::-1]


def pairs(how_many: int, seed: int, items: Sequence[str], rest: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Sources and targets with none to three items each."""
    rng = random.Random(seed)
    found = []
    for line in [*sentences(how_many, seed), *rest]:
        target = line.split()
        source = [source_of(word) for word in target]
        for item in rng.sample(list(items), rng.randrange(4)):
            place = rng.randrange(len(source) + 1)
            source.insert(place, item)
        found.append((" ".join(source), " ".join(target_of(source))))
    return found


def target_of(source: Sequence[str]) -> list[str]:
    """The translation of a source sentence of this world."""
    items = {*KNOWN, *UNKNOWN}
    words: list[str] = []
    for word in source:
        words += MAPPED.get(word, word).split() if word in items else [source_of(word)]
    return words


@dataclass(frozen=True)
class EvidenceWorld:
    """Where everything lies: src -> tgt."""

    place: Path

    @property
    def data(self) -> Path:
        """The data-bin; in it `static`, `lexical` and `numbers` (other evidence) are priors of the target."""
        return self.place / "data-bin"

    @property
    def raw(self) -> Path:
        """The same dictionaries with text, for --dataset-impl raw."""
        return self.place / "data-raw"

    def task_args(self, prior: str = "static", raw: bool = False) -> list[str]:
        place = [str(self.raw), "--dataset-impl", "raw"] if raw else [str(self.data)]
        return [
            *place, "--user-dir", str(USER_DIR), "--task", "llrnn_translation", "--prior", str(self.data / prior),
            "--source-lang", "src", "--target-lang", "tgt", "--cpu",
        ]  # fmt: skip

    def train_args(
        self, arch: str = "llrnn_lstm", prior: str = "static", save_dir: Path | None = None, raw: bool = False
    ) -> list[str]:
        """A small model and a few large steps; a later option of the same name wins."""
        saving = ["--no-save"] if save_dir is None else ["--save-dir", str(save_dir), "--no-epoch-checkpoints"]
        return [*self.task_args(prior, raw), "--arch", arch, *SIZES[arch], *TRAINING, *saving]

    @functools.cache  # noqa: B019, several tests ask the same of a few worlds
    def generate(self, shell: Shell, path: object, *options: object, raw: bool = True, code: int | None = 0) -> Result:
        """fairseq-generate on the test data."""
        return shell.run(
            "fairseq-generate", *self.task_args(raw=raw), "--path", path, "--gen-subset", "test", "--max-tokens", 400,
            "--max-len-b", 14, "--num-workers", 0, *EVERY_SENTENCE, *options, code=code,
        )  # fmt: skip

    def interactive(self, shell: Shell, path: object, sources: Sequence[str], *options: object) -> Result:
        """fairseq-interactive on these sentences."""
        return shell.run(
            "fairseq-interactive", *self.task_args(), "--path", path, "--max-len-b", 14, "--num-workers", 0, *options,
            stdin="\n".join(sources) + "\n",
        )  # fmt: skip

    def text(self, split: str, language: str) -> list[str]:
        return (self.place / f"{split}.{language}").read_text(encoding="utf-8").splitlines()


def write_data(made: EvidenceWorld, shell: Shell, *options: str, spelled: Callable[[str], str] = str) -> Path:
    """Write the pairs, run fairseq-preprocess, and return the evidence map. `spelled`: how a line is written."""
    place = made.place
    for seed, (split, how_many) in enumerate(SPLITS.items()):
        if split == "train":
            found = pairs(how_many, seed, KNOWN, every_word_once())
        else:
            source = f"el {source_of(NOT_OFFERED)} Karim 4711 tiov 12"
            found = [*pairs(how_many, seed, [*KNOWN, *UNKNOWN]), (source, " ".join(target_of(source.split())))]
        for language, lines in zip(("src", "tgt"), zip(*found, strict=True), strict=True):
            text = "".join(f"{spelled(line)}\n" for line in lines)
            (place / f"{split}.{language}").write_text(text, encoding="utf-8")
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", "--trainpref", place / "train", "--validpref", place / "valid",
        "--testpref", place / "test", "--destdir", made.data, *options,
    )  # fmt: skip
    made.raw.mkdir()  # as fairseq-preprocess --dataset-impl raw leaves it
    for language in ("src", "tgt"):
        shutil.copy(made.data / f"dict.{language}.txt", made.raw)
        for split in SPLITS:
            shutil.copy(place / f"{split}.{language}", made.raw / f"{split}.src-tgt.{language}")
    table = place / "map.tsv"
    table.write_text("".join(f"{source}\t{target}\n" for source, target in MAPPED.items()), encoding="utf-8")
    return table


def make_evidence_world(place: Path, world: World, shell: Shell) -> EvidenceWorld:
    """Write the pairs, then run fairseq-preprocess and `llrnn prior`. `world`: its lexicon."""
    made = EvidenceWorld(place)
    table = write_data(made, shell)
    features = ("--lexicon", world.place / "lexicon.tsv", "--top-words", 20, "--suffixes", 2, "--shapes")
    evidence = ("--evidence", "numbers,names,copies", "--set", f"evidence.mapping={table}")
    lexical = ("--lexical-translation", made.data, "--set", "translations.learned=true", "translations.aligner=ibm1")
    for name, options in {
        "static": (*features, *evidence),
        "lexical": (*features, *evidence, *lexical, "--set", "evidence.weight=0.5"),
        "numbers": (*features, "--evidence", "numbers"),
    }.items():
        shell.run("llrnn", "prior", "--dict", made.data / "dict.tgt.txt", *options, "--out", made.data / name)
    return made


def bitext_folders(shell: Shell, evidence: EvidenceWorld, place: Path) -> str:
    """Those of the world, and one of its first sentences."""
    for side in ("src", "tgt"):
        (place / f"text.{side}").write_text("\n".join(evidence.text("train", side)[:9]) + "\n", encoding="utf-8")
    dictionaries = [
        part for side, option in (("src", "--srcdict"), ("tgt", "--tgtdict"))
        for part in (option, evidence.data / f"dict.{side}.txt")
    ]  # fmt: skip
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", *dictionaries, "--trainpref", place / "text", "--destdir",
        place / "second",
    )  # fmt: skip
    return f"{evidence.data}:{place}/second"


# ---- in this process ------------------------------------------------------------------------------------------------

SENTENCES = [  # for tests of models
    "el tahc Ann tiov 12 Zoé",  # a known name, a known number, an unknown name
    "quark Karim Zoé quark sdrol 4711",  # unknown words only, one of them twice
    "enu emmop tneit neib",  # no evidence
    "1,000 kph ed al rem 7",  # mapped to several words
    "",
]
PREFIXES = [  # what their translations are, or begin with
    "Zoé",  # a slot of an unknown word
    "le Karim 4711 Zoé",
    "vache",
    "000 inconnu kilomètres",  # slots, and between them a word that no slot offers
    "chat",
]


def batch(task: Any, sources: Sequence[str], targets: Sequence[str] | None = None) -> dict[str, Any]:
    """fairseq's batch of the pairs, in the order given."""
    from fairseq.data import LanguagePairDataset

    sides = []
    for dictionary, lines in ((task.source_dictionary, sources), (task.target_dictionary, targets or sources)):
        rows = [dictionary.encode_line(line, add_if_not_exist=False, append_eos=True).long() for line in lines]
        sides += [rows, torch.tensor([len(row) for row in rows]).numpy(), dictionary]
    pairs = LanguagePairDataset(*sides, shuffle=False)
    collated = pairs.collater([pairs[i] for i in range(len(sources))])
    back = torch.argsort(collated["id"])
    for part in (collated, collated["net_input"]):
        part.update({name: value[back] for name, value in part.items() if isinstance(value, Tensor)})
    return collated


def make(
    evidence: EvidenceWorld, arch: str, prior: str, *options: str, seed: int = 7, loaded: Prior | None = None
) -> Setting:
    """A model with random weights; searches know not what was said. `loaded`: a prior in the place of that on disk."""
    from fairseq_llrnn.plugin.compat.dictionaries import OpenDictionary

    setting = build([*evidence.train_args(arch, prior), "--evidence-freely", *options], loaded)
    if loaded is not None:  # which has a table of its own for strings outside the dictionaries
        setting.task.src_dict = OpenDictionary(
            setting.task.source_dictionary, loaded.session.source, loaded.source_index
        )
        setting.task.tgt_dict = OpenDictionary(setting.task.target_dictionary, loaded.session.target)
    randomise(setting.model, scale=0.4, seed=seed)
    setting.model.eval()
    return setting
