"""The compared systems, with their priors and recipes; stages.py runs them.

Letters are those of the tables: a the general model; b a model of the domain alone; c the general model trained
further; d a and b mixed, word by word; e to g log-linear models of the domain with a general background; h and i
mixtures like d, with c or g instead of a. Each system except a and d has two or three recipes; the best one on the dev
text is used. With all of the text, which takes most of the time, only the recipe is tried that was best with the next
smaller part, without those in FOR_LITTLE_TEXT.
"""

from dataclasses import dataclass
from pathlib import Path

from corpora import Sizes

PERCENTS = (1, 10, 100)
ORDER = 3  # of the general n-gram
MODEL_WEIGHT = "0.9"  # the rest of the background (f) is the unigram of the domain's text
FOLDS = 5  # of the domain's text, whose n-grams are part of the background (g)

# The step gets smaller at once where the dev text shows no progress.
STEADY = ("--optimizer", "adam", "--clip-norm", "1.0", "--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.4")
TRAINING = (
    *("--sample-break-mode", "eos", "--tokens-per-sample", "512", "--required-batch-size-multiple", "1"),
    *STEADY,
)
# Said to fairseq, but nothing that a result depends on.
HOUSEHOLD = (
    *("--cpu", "--num-workers", "0", "--no-epoch-checkpoints", "--no-last-checkpoints", "--no-save-optimizer-state"),
    *("--log-format", "simple", "--log-interval", "1000"),
)


@dataclass(frozen=True)
class Recipe:
    """The training options of a model."""

    dropout: float
    lr: float
    look: int = 40  # updates between two looks at the dev text: about, for looks come after whole epochs
    patience: int = 2  # looks without progress
    tied: bool = True  # one table for input and output; otherwise the output begins with zeros: p is the background

    def options(self) -> tuple[str, ...]:
        known = ("--dropout", str(self.dropout), "--lr", str(self.lr), "--patience", str(self.patience))
        return (*known, "--tie-features" if self.tied else "--start-at-background")


LIGHT, STRONG = Recipe(0.3, 0.002), Recipe(0.5, 0.002)
GENTLE, QUICK = Recipe(0.3, 0.0003), Recipe(0.3, 0.001)
# From a background, or the general model, by small steps, of which the first ones are looked at, too.
FOR_LITTLE_TEXT = ("careful",)
CAREFUL = {"careful": Recipe(0.5, 0.0001, look=5, patience=4, tied=False)}
CAREFUL_SOFTMAX = {"careful": Recipe(0.3, 0.0001, look=5, patience=4)}


@dataclass(frozen=True)
class System:
    """A row of the tables, and a line of the picture."""

    name: str
    letter: str
    what: str
    recipes: dict[str, Recipe]  # none: nothing is trained
    background: str | None = None  # of a log-linear model: the domain's "unigram", or see `_background`; None: softmax
    from_general: bool = False  # whether the training goes on from the general model
    mixed: str | None = None  # of a mixture: the system that is mixed, word by word, with a model of the domain alone


WITH_BACKGROUND = {"light": LIGHT, "strong": STRONG, **CAREFUL}

SYSTEMS = (
    System("general", "a", "general model (softmax)", {}),
    System("softmax", "b", "domain alone, softmax", {"light": LIGHT, "strong": STRONG}),
    System("log-linear", "b", "domain alone, log-linear", WITH_BACKGROUND, "unigram"),
    System(
        "fine-tuned", "c", "general model, fine-tuned", {"gentle": GENTLE, "quick": QUICK, **CAREFUL_SOFTMAX},
        from_general=True,
    ),
    System("interpolated", "d", "a and b interpolated", {}, mixed="general"),
    System("n-gram", "e", "log-linear, general n-gram as background", WITH_BACKGROUND, "ngram"),
    System("neural", "f", "log-linear, general model as background", WITH_BACKGROUND, "model"),
    System(
        "neural-and-n-gram", "g", "log-linear, general model and the domain's n-gram as background", WITH_BACKGROUND,
        "model and ngram",
    ),
    System("fine-tuned-interpolated", "h", "c and b interpolated", {}, mixed="fine-tuned"),
    System("neural-interpolated", "i", "g and b interpolated", {}, mixed="neural-and-n-gram"),
)  # fmt: skip
TRAINED = tuple(system for system in SYSTEMS if system.recipes)


@dataclass(frozen=True)
class Place:
    """The paths of all files."""

    out: Path

    def text(self, name: str) -> Path:
        """Return the path of `general.train`, `Sequoia.10.train`, `Sequoia.test`, …"""
        return self.out / "text" / f"{name}.txt"

    def lexicon(self, name: str) -> Path:
        """Return the path of the analyses in the training text of `general`, `Sequoia.10`, …"""
        return self.out / "text" / f"{name}.lexicon.tsv"

    def data(self, name: str) -> Path:
        return self.out / "data" / name

    def prior(self, name: str) -> Path:
        return self.out / "priors" / name

    def model(self, *parts: str) -> Path:
        return self.out.joinpath("models", *parts)

    @property
    def general(self) -> Path:
        return self.model("general") / "checkpoint_best.pt"

    @property
    def arpa(self) -> Path:
        return self.out / "general.arpa.gz"


def softmax_prior(place: Place) -> list[str]:
    """Return the `llrnn prior` command of every softmax. They share a prior, so that the general model can be trained
    further.
    """
    dictionary = str(place.data("general") / "dict.txt")
    return ["--dict", dictionary, "--softmax", "--out", str(place.prior("softmax"))]


def prior(system: System, domain: str, percent: int, place: Place, sizes: Sizes) -> list[str]:
    """Return the `llrnn prior` command of a log-linear model, with analyses and counts of its part of the domain's
    text.

    With a general background it also has the analyses of the general text.
    """
    part = f"{domain}.{percent}"
    lexicons = [place.lexicon(part)]
    background: list[str] = []
    if system.background != "unigram":
        lexicons.append(place.lexicon("general"))
        background = ["--background", _background(system, place)]
    return [
        *("--dict", str(place.data("general") / "dict.txt"), "--lexicon", *map(str, lexicons)),
        *("--count-text", str(place.text(f"{part}.train")), "--top-words", str(sizes.top_words)),
        # the general text's words have no guessed features: so was docs/results/language-models.md made
        *("--shapes", "--suffixes", "--set", "words.guess=off", *background),
        *("--out", str(place.prior(f"{part}.{system.name}"))),
    ]


def _background(system: System, place: Place) -> str:
    """Return an expression: the general n-gram, the general model, or that model and n-grams of the domain, whose
    weights at each position the network chooses.
    """
    model = f"model({place.general}, weight={MODEL_WEIGHT})"
    own = f"ngram({ORDER}, folds={FOLDS})"
    expressions = {"ngram": f"ngram({place.arpa})", "model": model}
    return expressions.get(str(system.background), f"0.7 {model} plus 0.3 {own} with weights per position")


def general_training(place: Place, sizes: Sizes, user_dir: str) -> list[str]:
    return [
        str(place.data("general")),
        *_model(place.prior("softmax"), sizes),
        *LIGHT.options(),
        *("--max-tokens", str(4 * sizes.batch), "--max-epoch", str(sizes.max_epoch)),
        *TRAINING,
        *("--seed", str(sizes.seed)),
        *("--user-dir", user_dir, "--save-dir", str(place.model("general"))),
        *HOUSEHOLD,
    ]


def training(
    system: System, recipe: str, domain: str, percent: int, place: Place, sizes: Sizes, user_dir: str, tokens: int
) -> list[str]:
    """Return the fairseq-train command of a model. `tokens`: of its training text."""
    part = f"{domain}.{percent}"
    chosen = system.recipes[recipe]
    batches = -(-tokens // sizes.batch)  # of an epoch; padding makes them more
    every, longest = (max(1, round(look / batches)) for look in (chosen.look, Recipe.look))  # epochs
    known = place.prior("softmax" if system.background is None else f"{part}.{system.name}")
    return [
        str(place.data(part)),
        *_model(known, sizes),
        *chosen.options(),
        *(("--finetune-from-model", str(place.general)) if system.from_general else ()),
        *("--max-tokens", str(sizes.batch), "--max-epoch", str(longest * sizes.max_epoch)),
        *("--validate-interval", str(every), "--save-interval", str(every)),
        *TRAINING,
        *("--seed", str(sizes.seed)),
        *("--user-dir", user_dir, "--save-dir", str(place.model(part, f"{system.name}.{recipe}"))),
        *HOUSEHOLD,
    ]


def _model(known: Path, sizes: Sizes) -> tuple[str, ...]:
    """Return the model options; all models have one size."""
    width = ("--decoder-embed-dim", str(sizes.width), "--decoder-hidden-size", str(sizes.width))
    return (
        *("--task", "llrnn_language_modeling", "--arch", "llrnn_lm", "--criterion", "log_linear", *width),
        *("--decoder-layers", "1", "--bf16-products", "--prior", str(known)),
    )
