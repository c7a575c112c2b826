#!/usr/bin/env python3
"""Measure the cost of backgrounds that depend on the preceding words.

    python scripts/bench/bench_backgrounds.py [--quick] [--text FILE …] [--device cuda] [--threads 1]

Sizes: V words, M words with an indicator feature, S signatures, H hidden, N positions or hypotheses.

Training: one language model (embedding by features, two LSTM layers of 256, log-linear output, Adam) is trained in
turns with a unigram and with trigrams of the same text as its background, held out in folds as in real training.
Batches have 2,048 tokens. ngram_over_unigram_training is tokens per second, trigram over unigram, medians of the turns.
A third model mixes the trigram with a cache of 100 words, with learned weights. cache_over_ngram_training is its tokens
per second over those of the trigram alone.

Search: the step of an automaton with 100,000 states (histories that fail to shorter ones) for 1,000 hypotheses in
random states: advance, class weights, and adding them to the scores. automaton_step_share is its time over that of the
output layer in the same search: scores, log p of all classes and the best ten words, with a static background.
grammar_product_step_share is the same for the product of a grammar (20,000 states, twenty words each) with the
automaton.

The text is --text (tokenised, one sentence per line), or the training part of ../shared/data/ud-french-gsd-1.4, or a
synthetic one. Features are synthetic: 400 combinations over the words. With one thread, times are processor times of
the process, independent of other load.

The last line is one JSON object: ngram_over_unigram_training, cache_over_ngram_training, automaton_step_share,
grammar_product_step_share.
"""

import argparse
import gzip
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from measuring import clock, in_turns, parse, timed

from fairseq_llrnn.automata.automaton import END, ROOT, Automaton
from fairseq_llrnn.backgrounds.algebra import Product
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.backgrounds.background import Background, BoundBackground
from fairseq_llrnn.backgrounds.cache_background import Cache
from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.backgrounds.states import JointStates, States
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from fairseq_llrnn.ngrams.background import ngram_from_text
from fairseq_llrnn.ngrams.ngrams import Sentences
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.output.normalisers import Distribution, ExactRows, LogLinearOutput, class_log_probs
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.parts.automaton_part import AutomatonPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

TREEBANK = Path(__file__).resolve().parents[3] / "shared" / "data" / "ud-french-gsd-1.4" / "train.conllu.gz"
WORDS, TOKENS, TOP_WORDS, COMBINATIONS = 42_500, 360_000, 2500, 400  # as UD French
H, BATCH_TOKENS, PAD = 256, 2048, 1
STATES, GRAMMAR_STATES, HYPOTHESES, BEST = 100_000, 20_000, 1000, 10
CACHE = 100
QUICK, FULL = (5, 2), (25, 10)  # turns, folds


# ---- the text and its prior ------------------------------------------------------------------------------------------


def treebank_lines(path: Path) -> list[list[str]]:
    """Return the lower-cased forms of a CoNLL-U file, by sentence."""
    lines: list[list[str]] = [[]]
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            cells = line.split("\t")
            if cells[0].isdecimal():
                lines[-1].append(cells[1].lower())
            elif not line.strip():
                lines.append([])
    return [line for line in lines if line]


def synthetic_lines() -> list[list[str]]:
    """Return a text in which each word has twenty usual successors, with probability 0.5 in all."""
    rng = np.random.default_rng(1)
    weights = 1.0 / np.arange(1, WORDS + 1)
    drawn = rng.choice(WORDS, TOKENS, p=weights / weights.sum())
    usual = rng.choice(WORDS, (WORDS, 20), p=weights / weights.sum())
    follows, successor = rng.random(TOKENS) < 0.5, rng.integers(20, size=TOKENS)
    for i in range(1, TOKENS):
        if follows[i]:
            drawn[i] = usual[drawn[i - 1], successor[i]]
    ends = np.cumsum(rng.integers(8, 43, TOKENS // 25))
    return [[f"w{x}" for x in part] for part in np.split(drawn, ends[ends < TOKENS])]


def read_lines(args: argparse.Namespace) -> list[list[str]]:
    if args.text:
        return [line.split() for path in args.text for line in path.read_text(encoding="utf-8").splitlines()]
    return treebank_lines(TREEBANK) if TREEBANK.exists() else synthetic_lines()


def make_priors(lines: list[list[str]], folds: int) -> tuple[Prior, Prior, Sentences]:
    """Return a prior with a unigram, one with trigrams, and the text as ids."""
    counts = Counter(word for line in lines for word in line)
    symbols = (*SPECIALS, *(word for word, _ in counts.most_common()))
    words = WordList(symbols, np.array([0, 0, len(lines), 1, *(counts[word] for word in symbols[4:])]))
    rng, lexicon = np.random.default_rng(1), Lexicon()
    for word in symbols[4:]:
        i = min(int(rng.zipf(1.3)), COMBINATIONS)
        lexicon.add(word, [f"N:{i % 10}", f"Case:{i % 7}", f"Gender:{i % 3}", f"Number:{i % 11}", f"Person:{i % 13}"])
    unigram, _ = plain_prior(words, words.counts, lexicon, Recipe(top_words=min(TOP_WORDS, len(symbols) - 4)))
    index = {symbol: i for i, symbol in enumerate(symbols)}
    text = Sentences.of([[index[word] for word in line] for line in lines])
    made = ngram_from_text(text, words, 3, folds)
    trigram = replace(unigram, log_weights=made.log_weights).with_part(AutomatonPart(made.automaton, "ngram"))
    return unigram, trigram, text


# ---- training --------------------------------------------------------------------------------------------------------


class LanguageModel(nn.Module):
    """The modules of llrnn_lm."""

    def __init__(self, prior: Prior, cache: int = 0) -> None:
        """cache: number of words of a cache that is mixed with the prior's background (0: no cache)."""
        super().__init__()
        torch.manual_seed(1)
        class_of = torch.from_numpy(prior.output.class_of.copy())
        self.embedding = FeatureEmbedding(prior.input.features, class_of, H)
        self.network = RecurrentNetwork(H, H, 2)
        self.output = LogLinearOutput(prior.output.features, class_of, H, initial_scale=None)
        self.background: Background = with_cache(prior, class_of, cache) if cache else prior.background()

    def loss(self, previous: Tensor, target: Tensor) -> Tensor:
        """Return the sum of −log p of the targets, (B, T)."""
        hidden, _ = self.network(self.embedding(previous))
        background = self.background.bind(text=previous)
        view = background.view_of(previous)
        classes, share = view.locate(target.flatten())
        log_prob = ExactRows(self.output).log_prob(hidden.flatten(0, 1), classes, view.class_mass, share)
        return -log_prob.masked_fill(target.flatten() == PAD, 0.0).sum()


def with_cache(prior: Prior, class_of: Tensor, size: int) -> Background:
    """Mix the prior's background with a cache."""
    weights = torch.from_numpy(prior.log_weights.copy())
    cache = Cache(class_of, prior.output.num_classes, weights, size, 0.5, 0.99, learned=True)
    return Mixture([prior.background(), cache], [9, 1], "learned").float()


def batches(text: Sentences, most: int, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """Return inputs and targets of sentences of similar length, batched like in fairseq."""
    order = np.argsort(text.lengths, kind="stable")
    begins = text.lengths.cumsum() - text.lengths
    found: list[tuple[Tensor, Tensor]] = []
    for first in np.random.default_rng(2).permutation(len(order))[:most]:
        size = max(1, BATCH_TOKENS // (int(text.lengths[order[first]]) + 1))
        rows = order[first : first + size]
        longest = int(text.lengths[rows].max()) + 1
        target = torch.full((len(rows), longest), PAD)
        for i, row in enumerate(rows):
            length = int(text.lengths[row])
            target[i, :length] = torch.from_numpy(text.tokens[begins[row] : begins[row] + length])
            target[i, length] = END
        previous = target.roll(1, 1).masked_fill(target == PAD, PAD)
        previous[:, 0] = END
        found.append((previous.to(device), target.to(device)))
    return found


def update(model: LanguageModel, optimiser: torch.optim.Optimizer, previous: Tensor, target: Tensor) -> None:
    optimiser.zero_grad(set_to_none=True)
    model.loss(previous, target).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()


def training_ratios(text: Sentences, priors: dict[str, Prior], turns: int, device: torch.device) -> dict[str, float]:
    """Train all models on one batch per round."""
    models = {name: LanguageModel(prior).to(device) for name, prior in priors.items()}
    models["with a cache"] = LanguageModel(priors["trigram"], CACHE).to(device)
    optimisers = {name: torch.optim.Adam(model.parameters(), 1e-3) for name, model in models.items()}
    read = batches(text, turns + 1, device)

    def updates(name: str) -> Callable[[], float]:
        own = iter(read)
        return lambda: timed(partial(update, models[name], optimisers[name], *next(own)), device)

    rounds = in_turns({name: updates(name) for name in models}, turns, turns)
    tokens = [int((target != PAD).sum()) for _, target in read[1:]]
    print(f"training, {sum(tokens) // turns:,} tokens a batch, S = {models['unigram'].background.num_classes:,}")
    for name, seconds in rounds.seconds.items():
        rate = statistics.median(count / took for count, took in zip(tokens, seconds, strict=True))
        print(f"  {name:<12}{rate:>12,.0f} tokens/s")
    return {
        "ngram_over_unigram_training": rounds.ratio("unigram", "trigram"),
        "cache_over_ngram_training": rounds.ratio("trigram", "with a cache"),
    }


# ---- search ----------------------------------------------------------------------------------------------------------


def large_automaton(prior: Prior, states: int) -> Automaton:
    """Make an automaton with histories of one word (a tenth of the states) and of two. All fail to shorter ones."""
    rng = np.random.default_rng(3)
    num_words, short = len(prior.symbols), states // 10
    arcs = np.concatenate([[0], rng.geometric(1 / 20, short - 1), rng.geometric(1 / 3, states - short)])
    owner = np.repeat(np.arange(states), arcs)
    token = np.minimum(num_words ** rng.random(len(owner)), num_words - len(SPECIALS) - 1)  # frequent words first
    keys, first = np.unique(owner * np.int64(num_words) + len(SPECIALS) + token.astype(np.int64), return_index=True)
    owner, token = keys // num_words, keys % num_words
    weights = np.log(rng.random(len(first)) / 30)
    made = Automaton.from_arcs(num_words, states, 0, owner, token, rng.integers(states, size=len(first)), weights)
    fail = np.concatenate([np.full(short, ROOT), rng.integers(1, short, states - short)])
    root_next = np.where(np.isfinite(prior.log_weights), np.arange(num_words) % short, -1)
    root_next[END] = 0
    return replace(made, fail=fail, back_off=np.full(states, np.log(0.5)), root_next=root_next.astype(np.int64))


def large_grammar(num_words: int, states: int) -> Automaton:
    """Make a grammar in which every state allows some twenty words."""
    rng = np.random.default_rng(4)
    owner = np.repeat(np.arange(states), rng.geometric(1 / 20, states))
    token = np.minimum(num_words ** rng.random(len(owner)), num_words - len(SPECIALS) - 1).astype(np.int64)
    keys = np.unique(owner * np.int64(num_words) + len(SPECIALS) + token)
    weights, nexts = np.zeros(len(keys)), rng.integers(states, size=len(keys))
    return Automaton.from_arcs(num_words, states, 0, keys // num_words, keys % num_words, nexts, weights)


def step_shares(prior: Prior, turns: int, device: torch.device) -> dict[str, float]:
    automaton = large_automaton(prior, STATES)
    automaton.check(prior.log_weights)
    class_of, weights = (torch.from_numpy(a.copy()) for a in (prior.output.class_of, prior.log_weights))
    background = AutomatonBackground(class_of, prior.output.num_classes, weights, automaton).float().to(device)
    grammar = AutomatonBackground(
        class_of, prior.output.num_classes, weights, large_grammar(len(prior.symbols), GRAMMAR_STATES)
    )
    product = Product([grammar.float().to(device), background])
    both, ngram = product.bind(), background.bind()
    static, model = prior.background().to(device).bind(), LanguageModel(prior).to(device)
    rows, bias = model.output.composed()
    composed = rows.detach(), bias.detach()
    hidden = torch.randn(HYPOTHESES, H, device=device)
    state = torch.randint(STATES, (HYPOTHESES, 1), device=device)
    product_state = JointStates([torch.randint(GRAMMAR_STATES, (HYPOTHESES, 1), device=device), state])
    tokens = torch.randint(len(SPECIALS), len(prior.symbols), (HYPOTHESES,), device=device)
    scores = model.output.class_scores(hidden, composed)

    def output_layer() -> None:
        fresh = model.output.class_scores(hidden, composed)
        view = static.view(static.start(HYPOTHESES))
        Distribution(class_log_probs(fresh, view.class_mass)).best_words(view, BEST)

    def step(of: BoundBackground, before: States, changed: Tensor) -> None:
        of.view(of.advance(before, tokens)).class_mass.apply_sparse_updates_(changed)

    parts: dict[str, Callable[[], object]] = {
        "output layer": output_layer,
        "step": partial(step, ngram, state, scores),
        "best shares": lambda: ngram.view(state).best_share,
        "step of both": partial(step, both, product_state, scores.clone()),
        "best shares of both": lambda: both.view(product_state).best_share
    }
    with torch.inference_mode():
        rounds = in_turns({name: partial(timed, part, device) for name, part in parts.items()}, turns, turns)
    median = {name: rounds.median(name) for name in parts}
    print(f"search, {HYPOTHESES:,} hypotheses, {automaton.num_states:,} states, {automaton.num_arcs:,} arcs")
    print(f"  output layer with a static background  {median['output layer'] * 1e3:>8.2f} ms")
    print(f"  the automaton's step                   {median['step'] * 1e3:>8.2f} ms")
    print(f"  best shares of its classes             {median['best shares'] * 1e3:>8.2f} ms (adds to a static one's)")
    print(f"  step of a grammar times the automaton  {median['step of both'] * 1e3:>8.2f} ms")
    print(f"  best shares of its classes             {median['best shares of both'] * 1e3:>8.2f} ms")
    return {
        "automaton_step_share": rounds.ratio("step", "output layer"),
        "grammar_product_step_share": rounds.ratio("step of both", "output layer"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few turns and folds; under 50 seconds")
    parser.add_argument("--text", type=Path, nargs="+", help="tokenised text, one sentence a line")
    args = parse(parser)
    turns, folds = QUICK if args.quick else FULL
    device = torch.device(args.device)
    begin = clock()
    unigram, trigram, text = make_priors(read_lines(args), folds)
    print(f"V = {len(unigram.symbols):,}, {len(text.tokens):,} tokens; ", end="")
    print(", ".join(f"{value:,} {name}" for name, value in trigram.parts[0].counts().items()), end="; ")
    print(f"made in {clock() - begin:.0f} s; {args.device}, torch {torch.__version__}")
    figures = training_ratios(text, {"unigram": unigram, "trigram": trigram}, turns, device)
    figures |= step_shares(unigram, 4 * turns, device)
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
