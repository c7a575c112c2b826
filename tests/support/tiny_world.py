"""A tiny language with its data-bin and priors, and models of it built as fairseq builds them.

About fifty words: articles, nouns, adjectives and verbs with part of speech and gender, some of them rare. Every word
of the dictionary occurs in the training text, so that every background built from it covers every text.
"""

from __future__ import annotations

import argparse
import copy
import functools
import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from quick_composition import remember_compositions
from shell import Shell

NOUNS = {
    "Masc": "chat jardin pont lac mur roi train vent pain livre bois champ feu".split(),
    "Fem": "table ville mer lune rose tour route pomme vache fleur porte neige rue".split(),
}
ADJECTIVES = {"Masc": "vert petit grand froid lourd".split(), "Fem": "verte petite grande froide lourde".split()}
VERBS = "voit garde prend perd suit coupe rend tient mord pousse".split()
ARTICLES = {"Masc": ["le", "un"], "Fem": ["la", "une"]}
SPLITS = {"train": 96, "valid": 21, "test": 16, "test1": 8}  # as fairseq names them


def _phrase(rng: random.Random) -> list[str]:
    gender = rng.choice(("Masc", "Fem"))
    noun = NOUNS[gender][min(int(rng.expovariate(0.3)), len(NOUNS[gender]) - 1)]
    adjective = [rng.choice(ADJECTIVES[gender])] if rng.random() < 0.4 else []
    return [rng.choice(ARTICLES[gender]), noun, *adjective]


def sentences(how_many: int, seed: int) -> list[str]:
    """Sentences of 4 to 8 words, without a stop at the end."""
    rng = random.Random(seed)
    return [
        " ".join([*_phrase(rng), rng.choice(VERBS), *(_phrase(rng) if rng.random() < 0.8 else ["bien"])])
        for _ in range(how_many)
    ]


def every_word_once() -> list[str]:
    """Sentences that together hold the whole vocabulary."""
    lines = []
    verbs = iter(VERBS * 3)
    for gender, nouns in NOUNS.items():
        for i, noun in enumerate(nouns):
            article, adjective = ARTICLES[gender][i % 2], ADJECTIVES[gender][i % 5]
            lines.append(f"{article} {noun} {adjective} {next(verbs)} bien")
    return lines


def write_lexicon(path: Path) -> None:
    """The words with their analyses; `bien` is adverb and noun."""
    rows = [("bien", "bien", "ADV", "_"), ("bien", "bien", "NOUN", "Gender=Masc")]
    for gender in ("Masc", "Fem"):
        for upos, words in (("DET", ARTICLES), ("NOUN", NOUNS), ("ADJ", ADJECTIVES)):
            rows += [(word, word, upos, f"Gender={gender}") for word in words[gender]]
    rows += [(verb, verb, "VERB", "Mood=Ind") for verb in VERBS]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


@dataclass(frozen=True)
class World:
    """Where everything lies."""

    place: Path

    @property
    def data(self) -> Path:
        """The data-bin; its folder `prior` holds the ordinary prior."""
        return self.place / "data-bin"

    def prior(self, name: str) -> Path:
        """`prior` (20 words with an identity, unigram), `softmax`, `separate` (ψ ≠ φ), `flat` (uniform background)."""
        return self.data / name

    def text(self, split: str) -> list[str]:
        return (self.place / f"{split}.txt").read_text(encoding="utf-8").splitlines()

    def task_args(self, prior: str = "prior") -> list[str]:
        """What every command needs to find our task."""
        return [
            str(self.data), "--user-dir", str(USER_DIR), "--task", "llrnn_language_modeling",
            "--prior", str(self.prior(prior)), "--cpu",
        ]  # fmt: skip

    def train_args(self, prior: str = "prior", save_dir: Path | None = None) -> list[str]:
        """A small model and a few large steps; a later option of the same name wins."""
        saving = ["--no-save"] if save_dir is None else ["--save-dir", str(save_dir), "--no-epoch-checkpoints"]
        return [*self.task_args(prior), *MODEL, *TRAINING, *saving]


USER_DIR = Path(__file__).resolve().parents[2] / "fairseq_llrnn"
MODEL = ["--arch", "llrnn_lm", "--decoder-embed-dim", "16", "--decoder-hidden-size", "16", "--decoder-layers", "2"]
# fairseq's default is 8: it then leaves out a last batch whose size is no multiple of 8, in silence.
EVERY_SENTENCE = ["--required-batch-size-multiple", "1"]
TRAINING = [
    "--criterion", "log_linear", "--sample-break-mode", "eos", "--tokens-per-sample", "64", "--max-tokens", "128",
    "--optimizer", "adam", "--lr", "0.01", "--clip-norm", "1.0", "--seed", "1", "--num-workers", "0",
    "--log-format", "json", "--log-interval", "1", *EVERY_SENTENCE,
]  # fmt: skip


def make_world(place: Path, shell: Shell) -> World:
    """Write the texts and the lexicon, then run fairseq-preprocess and `llrnn prior`."""
    world = World(place)
    for seed, (split, how_many) in enumerate(SPLITS.items()):
        lines = sentences(how_many, seed) + (every_word_once() if split == "train" else [])
        (place / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_lexicon(place / "lexicon.tsv")
    shell.run(
        "fairseq-preprocess", "--only-source", "--trainpref", place / "train.txt", "--validpref",
        place / "valid.txt", "--testpref", f"{place / 'test.txt'},{place / 'test1.txt'}", "--destdir", world.data,
    )  # fmt: skip
    dictionary = ("--dict", world.data / "dict.txt")
    features = ("--lexicon", place / "lexicon.tsv", "--top-words", 20)
    for name, options in {
        "prior": features,
        "flat": (*features, "--background", "uniform"),
        "separate": (*features, "--set", "input_features=POS", "--set", "input_top_words=30"),
        "softmax": ("--softmax",),
    }.items():
        shell.run("llrnn", "prior", *dictionary, *options, "--out", world.prior(name))
    return world


def make_prior(shell: Shell, world: World, data: Path, out: Path, *options: object) -> Path:
    """Run `llrnn prior` on the dictionary of a data-bin (that of its target) with the tiny language's lexicon."""
    own = data / "dict.txt"
    dictionary = own if own.exists() else data / "dict.tgt.txt"
    given = ("--dict", dictionary, "--lexicon", world.place / "lexicon.tsv", "--top-words", 20)
    shell.run("llrnn", "prior", *given, *options, "--out", out)
    return out


def open_prior(shell: Shell, world: World, data: Path, name: str, *options: object, kind: str = "characters") -> str:
    """Make one with an open vocabulary, in the data-bin under this name."""
    make_prior(shell, world, data, data / name, "--open-vocabulary", kind, "--set", "open_vocabulary.types=3", *options)
    return name


# ---- in this process ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A task, a model and a criterion built by fairseq from command-line arguments."""

    task: Any
    model: Any
    criterion: Any
    cfg: Any


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The contents of a checkpoint."""
    with torch.serialization.safe_globals([argparse.Namespace]):
        return torch.load(path, map_location="cpu", weights_only=True)


@functools.cache
def _configuration(args: tuple[str, ...]) -> Any:
    """fairseq's reading of a command line; it takes longer than all that we do with it."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq's use of hydra
        remember_compositions()
        parser = options.get_training_parser()
        return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, input_args=list(args)))


def build(args: Sequence[object], prior: Any = None, double: bool = False) -> Setting:
    """What `fairseq-train args…` builds before it trains. `prior` takes the place of the one from disk."""
    from fairseq import tasks

    cfg = _configuration(tuple(str(a) for a in args))
    torch.manual_seed(1)
    task = tasks.setup_task(copy.deepcopy(cfg.task))
    if prior is not None:
        task.prior = prior
    model = task.build_model(copy.deepcopy(cfg.model))
    criterion = task.build_criterion(copy.deepcopy(cfg.criterion))
    return Setting(task, model.double() if double else model, criterion, cfg)


def randomise(model: torch.nn.Module, scale: float = 0.5, seed: int = 7) -> None:
    """Give every parameter clearly different values, biases included."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)


def randomised(
    args: Sequence[object], prior: Any = None, *, scale: float = 0.5, seed: int = 7, double: bool = False
) -> Setting:
    """As `build`, each parameter a value of its own."""
    setting = build(args, prior, double)
    randomise(setting.model, scale, seed)
    return setting


def evaluated(args: Sequence[object], prior: Any = None, **values: Any) -> Setting:
    """As `randomised`, for an evaluation."""
    setting = randomised(args, prior, **values)
    setting.model.eval()
    return setting


def assert_prefixes_agree(setting: Setting, lines: Sequence[str], first: int = 1, **close: Any) -> None:
    """A language model scores prefixes, the first of so many tokens, each from the one before, as it scores the whole.

    Its probabilities sum to one. Hypotheses change their places after every step. close: rtol and atol.
    """
    tokens, decoder = batch(setting.task.dictionary, lines)["net_input"]["src_tokens"], setting.model.eval().decoder
    with torch.no_grad():
        whole = setting.model.get_normalized_probs(decoder(tokens), log_probs=True)
        torch.testing.assert_close(whole.exp().sum(-1), torch.ones_like(whole[..., 0]), atol=1e-5, rtol=0)
        state: dict[str, Any] = {}
        for end in range(first, tokens.size(1) + 1):
            step = setting.model.get_normalized_probs(decoder(tokens[:, :end], incremental_state=state), log_probs=True)
            alive = tokens[:, end - 1].ne(setting.task.dictionary.pad())
            torch.testing.assert_close(step[alive, 0], whole[alive, end - 1], **close)
            tokens, whole = tokens.flip(0), whole.flip(0)
            decoder.reorder_incremental_state_scripting(state, torch.arange(len(tokens)).flip(0))


def batch(dictionary: Any, lines: Sequence[str]) -> dict[str, Any]:
    """fairseq's batch of these sentences (--sample-break-mode eos)."""
    rows = [dictionary.encode_line(line, add_if_not_exist=False, append_eos=True).long() for line in lines]
    size = max(len(row) for row in rows)
    target = torch.full((len(rows), size), dictionary.pad())
    for i, row in enumerate(rows):
        target[i, : len(row)] = row
    previous = target.roll(1, dims=1)
    previous[:, 0] = dictionary.eos()
    previous[target == dictionary.pad()] = dictionary.pad()
    lengths = torch.tensor([len(row) for row in rows])
    return {
        "id": torch.arange(len(rows)),
        "nsentences": len(rows),
        "ntokens": int(lengths.sum()),
        "net_input": {"src_tokens": previous, "src_lengths": lengths},
        "target": target,
    }
