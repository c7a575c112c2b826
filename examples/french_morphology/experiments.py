"""The list of all models of the experiment, with their priors and command lines. run.py runs it.

There are two modes. *Paper*: features and unigram come from the whole corpus, test texts included, as in Dymetman &
Xiao (2016, section 5). *Honest*: both come from the training text alone. All models share one dictionary.
"""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

PAPER, HONEST = "paper", "honest"
MODES = (PAPER, HONEST)
SWEEP = (10, 500, 1000, 2000, 2500, 3000, 5000, 10000)
# The paper's best M: the ablations are made there.
BEST_M = 2500

# The paper's sizes, for every model.
SIZES = ("--decoder-embed-dim", "256", "--decoder-hidden-size", "256", "--decoder-layers", "2")
STOCK = ("--task", "language_modeling", "--arch", "lstm_lm", *SIZES, "--decoder-out-embed-dim", "256")
OURS = (
    *("--task", "llrnn_language_modeling", "--arch", "llrnn_lm", "--criterion", "log_linear", *SIZES),
    "--bf16-products",
)
TRAINING = (
    *("--sample-break-mode", "eos", "--tokens-per-sample", "512"),
    *("--optimizer", "adam", "--clip-norm", "1.0", "--patience", "3", "--max-epoch", "30"),
)
# Said to fairseq, but nothing that a result depends on.
HOUSEHOLD = (
    "--cpu",
    "--num-workers",
    "0",
    "--no-epoch-checkpoints",
    "--log-format",
    "simple",
    "--log-interval",
    "50",
)
# Learning rates and batches: the slow one for fairseq's softmax, whose larger batches cost it less.
STEADY = ("--lr", "0.001", "--max-tokens", "2048")
PAPER_RECIPE = ("--lr", "0.002", "--max-tokens", "2048")
ANNEALING = ("--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.4", "--lr-patience", "0")
ANNEALED = (*PAPER_RECIPE, *ANNEALING)
DROPOUT = ("--dropout", "0.3", *ANNEALED)
REGULARISED = ("--tie-features", "--dropout", "0.4", *ANNEALED)
SMALL_BATCHES = ("--tie-features", "--dropout", "0.4", "--lr", "0.002", "--max-tokens", "1024", *ANNEALING)
LARGE = (
    *("--tie-features", "--decoder-embed-dim", "400", "--decoder-hidden-size", "400", "--dropout", "0.45"),
    *("--lr", "0.0025", "--max-tokens", "1536", *ANNEALING),
)
WIDE = (
    *("--tie-features", "--decoder-embed-dim", "400", "--decoder-hidden-size", "400", "--dropout", "0.45"),
    *("--lr", "0.0015", "--max-tokens", "1024", *ANNEALING),
)
WIDER = (
    *("--tie-features", "--decoder-embed-dim", "512", "--decoder-hidden-size", "512", "--dropout", "0.5"),
    *("--lr", "0.0015", "--max-tokens", "1024", *ANNEALING),
)
# Merity et al. 2018, with the weights of their word models
AWD = (
    *("--variational-dropout", "--weight-drop", "0.5"),
    *("--activation-penalty", "2", "--change-penalty", "1"),
)
# The best epoch without the penalties, which the loss of a validation holds
BY_NATS = ("--best-checkpoint-metric", "nll_loss")
SURFACE = ("--shapes", "--suffixes")
# Features of words that training lacks, from their spelling: in honest mode alone, and in models that say so.
NOT_GUESSED, GUESSED = ("--set", "words.guess=off"), ("--set", "words.guess=on")


@dataclass(frozen=True)
class Prior:
    """Options of `llrnn prior`."""

    name: str
    arguments: tuple[str, ...]
    features: str | None = None  # the mode whose lexicon gives morphology; None for no morphology
    counts: str | None = None  # the mode whose texts rank the words and make the unigram; None for the dictionary's

    def folder(self, out: Path) -> Path:
        return out / "priors" / self.name

    def command(self, ud: Path, out: Path) -> list[str]:
        sources: list[str] = []
        if self.features == PAPER:
            lexicons, trees = sorted(ud.glob("lexicon.tsv*")), sorted(ud.glob("*.conllu*"))
            sources += ["--lexicon" if lexicons else "--conllu", *map(str, lexicons or trees)]
        if self.features == HONEST:
            sources += ["--conllu", str(out / "train.conllu")]
        if self.counts is not None:
            sources += [
                "--count-text",
                str(out / "text" / ("all.txt" if self.counts == PAPER else "train.txt")),
            ]
        place = ["--dict", str(out / "data-bin" / "dict.txt"), "--out", str(self.folder(out))]
        return ["llrnn", "prior", *place, *sources, *self.arguments]


@dataclass(frozen=True)
class Model:
    """One row of the tables."""

    name: str
    what: str  # in the words of the tables
    group: str  # sweep, softmax, ablation, guess, or tree
    prior: Prior | None  # None: fairseq's own model
    arguments: tuple[str, ...] = PAPER_RECIPE
    seed: int = 1

    @property
    def mode(self) -> str | None:
        """The mode of the model's features or counts; None for a softmax without either."""
        return None if self.prior is None else self.prior.features or self.prior.counts

    def folder(self, out: Path) -> Path:
        return out / "models" / self.name

    def command(self, out: Path, user_dir: str) -> list[str]:
        own = () if self.prior is None else ("--prior", str(self.prior.folder(out)), "--user-dir", user_dir)
        kind = (*(STOCK if self.prior is None else OURS), *own)
        where = ("--save-dir", str(self.folder(out)), "--seed", str(self.seed))
        return ["fairseq-train", str(out / "data-bin"), *kind, *self.arguments, *TRAINING, *where, *HOUSEHOLD]

    def signature(self) -> str:
        """The settings of the row, in one line."""
        kind: tuple[str, ...] = STOCK
        prior = "no prior"
        if self.prior is not None:
            known = f"features {self.prior.features or 'none'}, counts {self.prior.counts or 'dictionary'}"
            kind, prior = OURS, f"prior {known} {' '.join(self.prior.arguments)}"
        options = " ".join((*kind, *self.arguments, *TRAINING, "--seed", str(self.seed)))
        return f"{self.name}: {prior}; train {options}"


def trained_as(model: Model, log: str) -> bool:
    """Return whether the last training in `log` (train.log of run.py) had the model's settings. Paths may differ."""
    commands = [shlex.split(line[2:]) for line in log.splitlines() if line.startswith("$ fairseq-train ")]
    expected = model.command(Path("/out"), "/package")
    return bool(commands) and _settings(commands[-1]) == _settings(expected)


def _settings(command: list[str]) -> dict[str, list[str]]:
    """Return options and their values without paths, the last value of a repeated option (as in fairseq)."""
    settings: dict[str, list[str]] = {}
    option = ""
    for word in command:
        if word.startswith("--"):
            option = word
            settings[option] = []
        elif option:
            settings[option].append(word)
    return {name: values for name, values in settings.items() if not any("/" in value for value in values)}


def lexical(mode: str, top_words: int) -> Prior:
    """Return the paper's prior: morphology, indicator features of the M most frequent words, unigram background."""
    return Prior(f"{mode}-m{top_words}", ("--top-words", str(top_words), *NOT_GUESSED), features=mode, counts=mode)


def ngrams(order: int) -> Prior:
    """Return the prior of n-grams of the training text, for mixtures with finished models (`run.py mix`)."""
    background = ("--top-words", "all", "--background", f"ngram({order}, folds=0)")
    return Prior(f"ngrams-{order}", background, counts=HONEST)


def with_surface(prior: Prior) -> Prior:
    return replace(prior, name=f"{prior.name}-surface", arguments=(*prior.arguments, *SURFACE))


def sweep() -> list[Model]:
    return [
        Model(f"{mode}-m{top}", f"log-linear, M = {top:,}", "sweep", lexical(mode, top))
        for mode in MODES
        for top in SWEEP
    ]


def softmaxes() -> list[Model]:
    """Return the paper's baseline, the strongest softmaxes of equal sizes, and those that share our background."""
    plain = Prior("softmax", ("--softmax",))
    adaptive = (
        *("--criterion", "adaptive_loss", "--adaptive-softmax-cutoff", "2500,10000", "--ddp-backend", "legacy_ddp"),
        *DROPOUT,
    )
    return [
        Model(
            "softmax-stock",
            "softmax, as in the paper",
            "softmax",
            None,
            ("--criterion", "cross_entropy", "--dropout", "0", *STEADY),
        ),
        Model("softmax-strong", "softmax, dropout, annealed, tied", "softmax", plain, REGULARISED),
        Model("softmax-adaptive", "adaptive softmax, dropout", "softmax", None, adaptive),
        *(
            Model(
                f"softmax-adaptive-{name}",
                f"adaptive softmax, more dropout, {size} wide",
                "softmax",
                None,
                (*adaptive, *(word for word in options if word != "--tie-features"), "--decoder-out-embed-dim", size),
            )
            for name, size, options in (("wide", "400", WIDE), ("wider", "512", WIDER))
        ),
        Model(
            "softmax-clusters-awd",
            "softmax, clusters by frequency, weights dropped, states penalised",
            "softmax",
            plain,
            (*SMALL_BATCHES, *AWD, *BY_NATS, "--output-tree", "clusters"),
        ),
        *(
            Model(
                f"{mode}-softmax-unigram",
                "softmax over the unigram, dropout, tied",
                "softmax",
                Prior(f"{mode}-softmax-unigram", ("--top-words", "all"), counts=mode),
                REGULARISED,
            )
            for mode in MODES
        ),
    ]


def ablations(mode: str) -> list[Model]:
    """Return models for each ingredient at M = BEST_M: removed from the paper's recipe, and added to the best."""
    base = lexical(mode, BEST_M)
    top = ("--top-words", str(BEST_M))
    words_only = Prior(f"{mode}-no-morphology", top, counts=mode)
    known = (*top, *NOT_GUESSED)
    uniform = Prior(f"{mode}-no-background", (*known, "--background", "uniform"), features=mode, counts=mode)
    surface = with_surface(base)
    return [
        Model(f"{mode}-no-morphology", "without morphology", "ablation", words_only),
        Model(f"{mode}-no-background", "without background (uniform)", "ablation", uniform),
        Model(
            f"{mode}-window8",
            "the paper's window of 8 words",
            "ablation",
            base,
            ("--context-window", "8", *PAPER_RECIPE),
        ),
        Model(f"{mode}-dropout", "with dropout, annealed", "ablation", base, DROPOUT),
        Model(f"{mode}-surface", "with shapes and suffixes", "ablation", surface),
        Model(
            f"{mode}-best",
            "best recipe: dropout, annealed, tied, smaller batches, shapes and suffixes",
            "ablation",
            surface,
            SMALL_BATCHES,
        ),
        Model(f"{mode}-wide", "best recipe, 400 wide instead of 256", "ablation", surface, WIDE),
    ]


def further() -> list[Model]:
    """Return models that are tried in paper mode only."""
    plain, surface = lexical(PAPER, 5000), with_surface(lexical(PAPER, 5000))
    narrow = with_surface(lexical(PAPER, BEST_M))
    small = "the paper's recipe, M = 5,000, in batches of 1,024 words"
    best = "best recipe, M = 5,000"
    large = "with dropout, annealed, tied, M = 5,000, 400 wide"
    return [
        Model("paper-wider", "best recipe, 512 wide instead of 256", "ablation", narrow, WIDER),
        Model(
            "paper-awd",
            "best recipe, weights dropped, states penalised",
            "ablation",
            narrow,
            (*SMALL_BATCHES, *AWD),
        ),
        Model(
            "paper-awd-wide",
            "best recipe, weights dropped, states penalised, 400 wide",
            "ablation",
            narrow,
            (*WIDE, *AWD, *BY_NATS),
        ),
        Model("paper-m5000-small", small, "ablation", plain, ("--lr", "0.002", "--max-tokens", "1024")),
        Model("paper-best-m5000", best, "ablation", surface, SMALL_BATCHES),
        Model("paper-large", large, "ablation", plain, LARGE),
    ]


def guessed() -> list[Model]:
    """Return the best recipes of honest mode, with features guessed from the spelling of words that training lacks."""
    prior = Prior("honest-guess", ("--top-words", str(BEST_M), *GUESSED, *SURFACE), features=HONEST, counts=HONEST)
    best = "best recipe, unknown words guessed"
    first = Model("honest-guess", best, "guess", prior, SMALL_BATCHES)
    return [
        first,
        *(replace(first, name=f"{first.name}-{seed}", what=f"{best}, seed {seed}", seed=seed) for seed in (2, 3)),
        Model(
            "honest-guess-awd",
            f"{best}, weights dropped, states penalised",
            "guess",
            prior,
            (*SMALL_BATCHES, *AWD, *BY_NATS),
        ),
        Model("honest-guess-wide", f"{best}, 400 wide", "guess", prior, WIDE),
        Model(
            "honest-guess-awd-wide",
            f"{best}, weights dropped, states penalised, 400 wide",
            "guess",
            prior,
            (*WIDE, *AWD, *BY_NATS),
        ),
    ]


def trees() -> list[Model]:
    """Return the paper's recipe with a learned tree over the signatures (docs/results/trees-and-classification.md)."""
    learned = (*PAPER_RECIPE, "--output-tree", "learned", "--tree-depth", "2")
    composed, wide = (*learned, "--tree-rows", "composed"), (*learned, "--tree-arity", "256")
    both = [
        model
        for mode in MODES
        for model in (
            Model(f"{mode}-tree", "along a learned tree", "tree", lexical(mode, BEST_M), learned),
            Model(f"{mode}-tree-composed", "… with composed rows", "tree", lexical(mode, BEST_M), composed),
        )
    ]
    return [*both, Model("paper-tree-256", "… with up to 256 children a node", "tree", lexical(PAPER, BEST_M), wide)]


def models() -> list[Model]:
    """Return all models, the most important first."""
    by_mode = [*ablations(PAPER), *further(), *ablations(HONEST), *guessed()]
    first = {f"{mode}-m{BEST_M}" for mode in MODES}
    swept = sorted(sweep(), key=lambda model: model.name not in first)
    return [*swept[: len(first)], *softmaxes(), *by_mode, *swept[len(first) :], *trees()]
