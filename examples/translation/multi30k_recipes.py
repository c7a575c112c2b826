"""The experiments on Multi30k: texts, priors and models as tables, and their command lines.

Every path is relative to the folder OUT, in which multi30k.py runs all commands:

    pair.json                            the target language, with the files of its words' features next to it
    text/{train,val,test2016}.{en,fr}    tokens, lower-cased; raw/ has the original text (fr, or another target)
    bpe.model, piecetext/                joint BPE (sentencepiece)
    dictionary.fr.txt                    words of the text, and further forms of them
    copy/                                of examples/translation/make_copy_test.py
    word/, word-unk/, word-forms/, piece/  of fairseq-preprocess, with the priors in them
    models/NAME/                         checkpoints (or a link to a folder with them)
    results/NAME/                        average.pt, {valid,test,copy}.{out,fr,nbest}, reports of rescoring
"""

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from multi30k_pairs import Pair

import fairseq_llrnn
from fairseq_llrnn.errors import OptionError

USER_DIR = str(Path(fairseq_llrnn.__file__).parent)
SPLITS = ("train", "val", "test2016")
# Sets that are translated: where their text stands, and how fairseq calls them.
TEXTS = {"valid": "text/val", "test": "text/test2016", "copy": "copy/copy"}

# Joint BPE: vocabulary and settings of sentencepiece. 0 is <unk>; fairseq has the other special symbols.
PIECES: dict[str, Any] = {
    "vocab_size": 10000, "model_type": "bpe", "character_coverage": 1.0, "normalization_rule_name": "identity",
    "unk_id": 0, "bos_id": -1, "eos_id": -1,
}  # fmt: skip

# Data folder -> the texts' folder and what else fairseq-preprocess is told. word-unk: words seen once are <unk>.
DATA = {
    "word": ("text", ""),
    "word-unk": ("text", "--thresholdsrc 2 --thresholdtgt 2"),
    "word-forms": ("text", "--tgtdict dictionary.{target}.txt"),
    "piece": ("piecetext", "--joined-dictionary"),
}

# The dictionary of word-forms: the words of the text, and forms of them that it lacks.
DICTIONARY = "llrnn dictionary --text text/train.{target} {sources} --most 50000 --out dictionary.{target}.txt"

# What is known of the forms of words: of those of the dictionary, and of all English ones that a package lists.
TABLES = (
    "llrnn lexicon --language {target} --dict word-forms/dict.{target}.txt --out words.{target}.tsv",
    "llrnn lexicon --language en --out words.en.tsv",
)

# Prior -> what `llrnn prior` is told besides --out.
FEATURES = (
    "--dict {data}/dict.{target}.txt --count-text {text}/train.{target} {knowledge} --shapes --suffixes "
    "--background unigram"
)
LEXICAL = f"{FEATURES} --lexical-translation {{data}} --set translations.aligner=ibm1"
EVIDENCE = "--top-words 4000 --evidence numbers,names,copies"
# The prior of word-forms, but for evidence. No lemma is a feature: nearly all words would be signatures of their own.
FORMS = (
    "--dict {data}/dict.{target}.txt --count-text {text}/train.{target} {sources} --set words.lemma_floor=1000000 "
    "--shapes "
    "--suffixes 50 --background unigram --lexical-translation {data} --set translations.units=lemma --top-words 4000"
)
PRIORS = {
    "word/prior": f"{LEXICAL} {EVIDENCE}",
    "word/features": f"{FEATURES} {EVIDENCE}",
    "word-forms/prior": f"{FORMS} --set translations.aligner=ibm1 --evidence numbers,names,copies",
    "word-forms/terms": f"{FORMS} --set translations.aligner=eflomal translations.source_lexicon=words.en.tsv "
    "--evidence terms,numbers,names,copies,translations",
    "piece/lexical": f"{LEXICAL} --top-words all --pieces sentencepiece",
    "piece/evidence": f"{LEXICAL} --set translations.top=100 --top-words all --pieces sentencepiece "
    "--evidence numbers,names,copies",
}

# Training, the same for all that say nothing else: 7,500 updates of 2,000 tokens, 32 epochs.
TRAINING = (
    "--optimizer adam --adam-betas '(0.9, 0.98)' --lr 0.003 --lr-scheduler "
    "polynomial_decay --warmup-updates 800 --total-num-update 7500 --max-update 7500 --end-learning-rate 0 --clip-norm "
    "1.0 --max-tokens 2000 --required-batch-size-multiple 1 --num-workers 0 --keep-last-epochs 5 --log-format "
    "simple --log-interval 500"
)
# The Transformer-tiny of the literature, and ours in the same sizes (with the same dropout, in plugin/).
SOFTMAX = (
    "--arch transformer --encoder-embed-dim 128 --encoder-ffn-embed-dim 256 --encoder-layers 4 "
    "--encoder-attention-heads 4 --decoder-embed-dim 128 --decoder-ffn-embed-dim 256 --decoder-layers 4 "
    "--decoder-attention-heads 4 --dropout 0.3 --criterion label_smoothed_cross_entropy --label-smoothing 0.1"
)
LOG_LINEAR = "--arch llrnn_transformer_multi30k --criterion log_linear --label-smoothing 0.1"


@dataclass(frozen=True)
class Recipe:
    """A model."""

    what: str
    data: str  # of DATA
    options: str
    prior: str | None = None  # of PRIORS; None: fairseq's own model
    replaces_unknown: bool = False  # whether <unk> in its output gives way to a source word

    @property
    def pieces(self) -> bool:
        return DATA[self.data][0] == "piecetext"

    def task(self) -> list[str]:
        """Options of training and search."""
        if self.prior is None:
            return ["--task", "translation"]
        return ["--user-dir", USER_DIR, "--task", "llrnn_translation", "--prior", self.prior]


RECIPES = {
    "softmax-word": Recipe("softmax over words", "word", f"{SOFTMAX} --share-decoder-input-output-embed"),
    "ll-word": Recipe(
        "log-linear over words: morphology, shapes, suffixes, lexical background, evidence; the decoder reads words "
        "through the same features", "word", f"{LOG_LINEAR} --feature-input --tie-features", "word/prior",
    ),
    "ll-word-features": Recipe(
        "ll-word without the lexical background", "word",
        f"{LOG_LINEAR} --feature-input --tie-features", "word/features",
    ),
    "ll-word-untied": Recipe(
        "ll-word, but the decoder reads words through a table of its own", "word", LOG_LINEAR, "word/prior",
    ),
    "ll-word-forms": Recipe(
        "ll-word with a larger dictionary, which has forms that the training text lacks; translations are between "
        "lemmas", "word-forms", f"{LOG_LINEAR} --feature-input --tie-features", "word-forms/prior",
    ),
    "ll-word-terms": Recipe(
        "ll-word-forms with slots for rare translations, and with invented terms", "word-forms",
        f"{LOG_LINEAR} --feature-input --tie-features --invented-terms 0.3 --term-forms words.{{target}}.tsv",
        "word-forms/terms",
    ),
    "softmax-piece": Recipe("softmax over pieces", "piece", f"{SOFTMAX} --share-all-embeddings"),
    "ll-piece": Recipe(
        "log-linear over pieces: features of pieces, lexical background, which is hidden from ever fewer sentences in "
        "the first 3,000 updates; the decoder reads pieces through the same features", "piece",
        f"{LOG_LINEAR} --feature-input --tie-features --lexical-warmup-updates 3000", "piece/lexical",
    ),
    "ll-piece-evidence": Recipe(
        "ll-piece with evidence: numbers, names and unknown words of the source are one token each", "piece",
        f"{LOG_LINEAR} --feature-input --tie-features --lexical-warmup-updates 3000", "piece/evidence",
    ),
    "ll-piece-at-once": Recipe(
        "ll-piece, but with all of the background from the start", "piece",
        f"{LOG_LINEAR} --feature-input --tie-features", "piece/lexical",
    ),
    "ll-piece-untied": Recipe(
        "ll-piece-at-once, but the decoder reads pieces through a table of its own", "piece", LOG_LINEAR,
        "piece/lexical",
    ),
    "softmax-word-unk": Recipe(
        "softmax over words; those seen once are <unk>, and <unk> is replaced by copying", "word-unk",
        f"{SOFTMAX} --share-decoder-input-output-embed", replaces_unknown=True,
    ),
}  # fmt: skip


def find(name: str) -> Recipe:
    """Return the recipe of a model, whose name may end in -seedN."""
    recipe = RECIPES.get(re.sub(r"-seed\d+$", "", name))
    if recipe is None:
        raise OptionError(
            f"{name}: expected one of {', '.join(RECIPES)} (or NAME-seed2, …); for other models add --recipe NAME"
        )
    return recipe


def preprocess(pair: Pair, data: str, destination: str) -> list[str]:
    text, options = DATA[data][0], DATA[data][1].format(target=pair.target)
    places = [f"--{which}pref {text}/{split}" for which, split in zip(("train", "valid", "test"), SPLITS, strict=True)]
    command = f"fairseq-preprocess -s en -t {pair.target} {' '.join(places)} {options} --destdir {destination}"
    return shlex.split(command)


def binarise(pair: Pair, data: str, text: str, destination: str) -> list[str]:
    """Return the command that makes a text the test of a data folder with the same dictionaries."""
    dictionaries = f"--srcdict {data}/dict.en.txt --tgtdict {data}/dict.{pair.target}.txt"
    return shlex.split(
        f"fairseq-preprocess -s en -t {pair.target} --testpref {text} {dictionaries} --destdir {destination}"
    )


def build_prior(pair: Pair, prior: str) -> list[str]:
    data = prior.partition("/")[0]
    known = {"data": data, "text": DATA[data][0], "target": pair.target}
    given = PRIORS[prior].format(**known, knowledge=pair.knowledge, sources=pair.all_sources)
    return ["llrnn", "prior", *shlex.split(given), "--out", prior]


def build_dictionary(pair: Pair) -> list[str]:
    return shlex.split(DICTIONARY.format(target=pair.target, sources=pair.all_sources))


def build_tables(pair: Pair) -> list[list[str]]:
    return [shlex.split(table.format(target=pair.target)) for table in TABLES]


def train(pair: Pair, recipe: Recipe, name: str, seed: int, gpu: bool = False) -> list[str]:
    options = recipe.options.format(target=pair.target)
    own = shlex.split(f"--source-lang en --target-lang {pair.target} {TRAINING} {options}")
    own += ["--num-workers", "2"] if gpu else ["--cpu"]
    if recipe.prior is not None and not gpu:  # what the time of a GPU goes into are starts of operations
        own.append("--bf16-products")
    return ["fairseq-train", recipe.data, *recipe.task(), *own, "--seed", str(seed), "--save-dir", f"models/{name}"]


def search(pair: Pair, recipe: Recipe, path: str) -> list[str]:
    """Return the options of fairseq-generate and -interactive."""
    own = shlex.split(
        f"--source-lang en --target-lang {pair.target} --beam 5 --max-len-a 2 --max-len-b 20 --max-tokens 4000 "
        "--required-batch-size-multiple 1 --num-workers 0 --cpu"
    )
    return [*recipe.task(), "--path", path, *own]


def generate(pair: Pair, recipe: Recipe, path: str, which: str, data: str | None = None) -> list[str]:
    """Return the fairseq-generate command. `which`: valid or test; `data`: another folder than the recipe's."""
    own = ["--gen-subset", which]
    own += ["--post-process", "sentencepiece"] if recipe.pieces else []
    own += ["--print-alignment", "soft"] if recipe.replaces_unknown else []
    return ["fairseq-generate", data or recipe.data, *search(pair, recipe, path), *own]


def generate_nbest(pair: Pair, recipe: Recipe, path: str, which: str, count: int) -> list[str]:
    """Return the command without attention, which leaves <unk> unchanged."""
    own = ["--beam", str(count), "--nbest", str(count), "--max-tokens", "600"]
    return [*generate(pair, replace(recipe, replaces_unknown=False), path, which), *own]


def interactive(pair: Pair, recipe: Recipe, path: str, text: str) -> list[str]:
    """Return the command for the text itself. In a data folder, words outside the dictionary are <unk> and cannot be
    copied.
    """
    own = ["--input", text, "--buffer-size", "100000"]
    own += ["--bpe", "sentencepiece", "--sentencepiece-model", "bpe.model"] if recipe.pieces else []
    return ["fairseq-interactive", recipe.data, *search(pair, recipe, path), *own]


def rescore(pair: Pair, model: str, system: str, which: str, out: str) -> list[str]:
    """Return the command that rescores `system`'s list of a set by a model, on the test with weights tuned on the valid
    one.
    """
    command = ["llrnn", "rescore", "--path", f"results/{model}/average.pt", "--metric", "bleu", "--tokenize", "none"]
    command += ["--source", f"{TEXTS[which]}.en", "--nbest", f"results/{system}/{which}.nbest"]
    command += ["--reference", f"{TEXTS[which]}.{pair.target}", "--out", f"{out}/{which}.{pair.target}"]
    if which == "valid":
        return [*command, "--weights", f"{out}/test.{pair.target}.weights.json"]
    valid = TEXTS["valid"]
    return [*command, "--tune", f"{valid}.en", f"results/{system}/valid.nbest", f"{valid}.{pair.target}"]
