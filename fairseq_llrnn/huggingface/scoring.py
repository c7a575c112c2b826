"""Scores of texts under any causal language model of transformers, with the log-linear head or without it.

Translation models with the head have scores over the words of their prior.

    model = fairseq_llrnn.load("folder")                                    # of save_pretrained
    CausalScorer(model, tokenizer).surprisals(["le chat dort ."])           # a model and a tokenizer that you have

A sentence is scored after the start token, and its end counts. Words stand between blanks. The log p of a word is the
sum over its tokens, in float32. Two options change what the probability of a word is:

    tokenisations="all"     p(w₁ … wᵢ) sums over all tokenisations of these words
    bow_correction=True     a word has ended only when the next one begins

With tokens t of a word w after the tokens h, and B the tokens that begin a word, and the end, the second is

    log p(w | h)  =  Σ log p(t | …)  +  log p(B | h, w)  −  log p(B | h)           the last term is 0 for the first word

(Pimentel & Meister 2024; Oh & Schuler 2024). Tokenizers such as GPT-2's put the blank before a word into its first
token, so that the first sum leaves open whether the word goes on. With either option, the rows of a sentence still sum
to the log p of the sentence.

Sizes: S tokenisations of a line, R rows of a batch, T tokens, W words, K tokens of the model.
"""

from __future__ import annotations

import itertools
import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, check_choice, check_least
from fairseq_llrnn.evaluation.scoring_model import ScoringModel
from fairseq_llrnn.evaluation.texts import LineScore, together
from fairseq_llrnn.features.dictionary import SPECIALS, plain
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.huggingface.token_texts import token_texts
from fairseq_llrnn.huggingface.tokenisations import Lattices
from fairseq_llrnn.output.normalisers import check_scores
from fairseq_llrnn.output.records import Batch

TOKENISATIONS = ("canonical", "all")
NO_SPELLING = "leave it out, as models of transformers spell no unknown words"
LINES = 64  # that are sorted by length together
Tokens = tuple[int, ...]


@dataclass
class Line:
    """A line as tokens."""

    number: int  # from 1
    words: list[str]  # W
    tokens: Tokens  # T
    ends: list[int]  # (W,) the number of tokens up to the end of each word
    sequences: list[tuple[Tokens, list[int]]]  # (S,) tokens, and the ends of words
    repeats: list[int]  # (W,) in how many sequences each beginning of so many words is
    too_long_for: int | None = None  # the number of words that fit


class CausalScorer(ScoringModel):
    """A causal language model of transformers that scores lines of words.

    Attributes:
        model, tokenizer: as given.
        longest: most tokens of a line.
    """

    dictionaries: Sequence[Path] = ()
    _spelling_advice = NO_SPELLING

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        tokenisations: str = "canonical",
        max_tokenisations: int = 1000,
        bow_correction: bool = False,
        has_ends: bool = True,
        max_tokens: int = 2048,
    ) -> None:
        """
        Args:
            model: its forward returns `logits`. tokenizer: a fast one.
            tokenisations: `canonical`, the tokenizer's own one, or `all`.
            max_tokenisations: of a line. More are an error.
            bow_correction: whether the end of a word is part of its probability (module docstring).
            has_ends: whether the end of a sentence is scored. False: as minicons and lm-eval do by default.
            max_tokens: of a batch, padding included.

        Raises:
            OptionError: another value. DataError: a slow tokenizer, or one without a start or an end of sentence.
        """
        check_choice("tokenisations", tokenisations, TOKENISATIONS)
        check_least("max_tokenisations", max_tokenisations, 1)
        if not getattr(tokenizer, "is_fast", False):
            raise DataError(f"expected a fast tokenizer, found {type(tokenizer).__name__}; give one of AutoTokenizer")
        self.model, self.tokenizer = model, tokenizer
        self.tokenisations, self.max_tokenisations = tokenisations, max_tokenisations
        self.bow_correction, self.has_ends, self.max_tokens = bow_correction, has_ends, max_tokens
        config = model.config
        self._end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else config.eos_token_id
        starts = [getattr(config, "start_token_id", None), tokenizer.bos_token_id, config.bos_token_id, self._end]
        self._start = next((token for token in starts if token is not None), None)
        if not isinstance(self._end, int):
            raise DataError("expected a tokenizer with an end of sentence, found none; set its eos_token")
        longest = getattr(config.get_text_config(), "max_position_embeddings", None)
        self._convention = CONVENTIONS.get(self.pieces or "")
        self.vocabulary = None if self._prior is None else frozenset(self._prior.symbols).difference(SPECIALS)
        self.longest = math.inf if longest is None else longest - 1  # tokens after the start

    @property
    def _prior(self) -> Any:
        """The prior of a model whose tokens are its words. None: the tokens are the tokenizer's."""
        head = getattr(self.model, "head", None)
        is_wrapped = getattr(self.model, "is_wrapped", False)
        return None if is_wrapped or head is None else getattr(head, "prior", None)

    @property
    def prior(self) -> str | None:
        """The signature of the prior of a log-linear model."""
        prior = getattr(getattr(self.model, "head", None), "prior", None)
        return None if prior is None else str(prior.signature)

    @property
    def pieces(self) -> str | None:
        """The convention of subword pieces with blanks between them, if the prior is over such."""
        return None if self._prior is None else self._prior.settings.get("pieces")

    # ---- scores -----------------------------------------------------------------------------------------------------

    def _line_scores(self, lines: Sequence[str], source: Sequence[str] | None, is_open: bool) -> Iterator[LineScore]:
        return self.lines(lines)

    @torch.inference_mode()
    def _next_log_probs(self, prefix: str, source: str | None) -> tuple[Tensor, Callable[[int], str]]:
        tokens = self.tokenizer(" ".join(prefix.split()), add_special_tokens=False)["input_ids"]
        with _evaluating(self.model):
            logits = self.model(input_ids=torch.tensor([[self._start, *tokens]], device=self.model.device)).logits
        return logits[0, -1].float().log_softmax(0), lambda token: str(self.tokenizer.decode([token]))

    def lines(self, lines: Iterable[str], is_open: bool = False) -> Iterator[LineScore]:
        """Yield the score of every line, in their order. The vocabulary is never open."""
        numbered = enumerate(lines, start=1)
        while some := list(itertools.islice(numbered, LINES)):
            read = [self._read(number, line) for number, line in some]
            sequences = dict.fromkeys(tokens for line in read for tokens, _ in line.sequences)
            scores: dict[Tokens, tuple[Tensor, Tensor]] = {}
            with _evaluating(self.model):
                for batch in together(sorted(sequences, key=len), lambda t: len(t) + 1, math.inf, self.max_tokens):
                    scores |= dict(zip(batch, self._score_batch(batch), strict=True))
            yield from (self._scored(line, scores) for line in read)

    def _read(self, number: int, text: str) -> Line:
        """Split a line into words and tokens.

        Raises:
            DataError: too many tokenisations.
        """
        words = text.split()
        encoded = self.tokenizer(" ".join(words), add_special_tokens=False, return_offsets_mapping=True)
        words, ends = aligned(words, encoded["offset_mapping"])
        tokens = tuple(encoded["input_ids"])
        line = Line(number, words, tokens, ends, [(tokens, ends)], [1] * len(words))
        if self.bow_correction:
            inside = [token for at, token in enumerate(tokens) if at not in {0, *ends}]
            if (wrong := next(filter(self._begins.__contains__, inside), None)) is not None:
                token = self.tokenizer.convert_ids_to_tokens(wrong)
                raise DataError(
                    f"line {number}: bow_correction: expected that words begin after blanks alone, found the token "
                    f"{token!r} inside of a word; leave bow_correction out with this tokenizer"
                )
        if len(tokens) > self.longest:
            line.sequences, line.too_long_for = [], bisect_right(ends, int(self.longest))
        elif self.tokenisations == "all":
            self._add_tokenisations(line)
        return line

    def _add_tokenisations(self, line: Line) -> None:
        of_words = [
            self._lattices.lattice(line.tokens[begin:end], begin == 0)
            for begin, end in itertools.pairwise([0, *line.ends])
        ]
        number = math.prod(lattice.number for lattice in of_words)
        if number > self.max_tokenisations:
            raise DataError(
                f"line {line.number}: expected at most {self.max_tokenisations:,} tokenisations, found {number:,}; "
                "raise max_tokenisations, break the line, or use tokenisations='canonical'"
            )
        line.sequences = [
            (tuple(itertools.chain(*parts)), list(itertools.accumulate(map(len, parts))))
            for parts in itertools.product(*of_words)
        ]
        counts = itertools.accumulate((lattice.number for lattice in of_words), operator.mul)
        line.repeats = [number // count for count in counts]

    @cached_property
    def _lattices(self) -> Lattices:
        return Lattices(token_texts(self.tokenizer))

    @cached_property
    def _begins(self) -> frozenset[int]:
        """The tokens that begin a word, and the end. Empty if each token is a word."""
        texts = token_texts(self.tokenizer).later
        begins = [token for token, text in enumerate(texts) if text is not None and text[:1] == b" "]
        is_any_inside = len(begins) + texts.count(None) < len(texts)
        return frozenset({*begins, self._end} if is_any_inside else ())

    def tokens(self, line: str) -> Tokens:
        """Return the tokenizer's tokens of a line."""
        return tuple(self.tokenizer(line, add_special_tokens=False)["input_ids"])

    def logits(self, batch: Sequence[Tokens]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits (R, T + 1, K) after the start and after each token, the next tokens, and a mask of these.

        The next tokens (R, T + 1) have the end after the last token.
        """
        width = 1 + max(map(len, batch))
        tokens = torch.full((len(batch), width + 1), self._end)
        mask = torch.zeros(len(batch), width, dtype=torch.long)
        tokens[:, :1] = torch.tensor(self._start)
        for row, sequence in enumerate(batch):
            tokens[row, 1 : 1 + len(sequence)] = torch.tensor(sequence, dtype=torch.long)
            mask[row, : 1 + len(sequence)] = 1
        padding = self.tokenizer.pad_token_id
        read = tokens[:, :-1] if padding is None else tokens[:, :-1].masked_fill(mask == 0, padding)
        tokens, mask, read = (each.to(self.model.device) for each in (tokens, mask, read))
        return self.model(input_ids=read, attention_mask=mask).logits, tokens[:, 1:], mask.bool()

    @torch.inference_mode()
    def _score_batch(self, batch: Sequence[Tokens]) -> list[tuple[Tensor, Tensor]]:
        """log p of the tokens of each sequence and of its end, and log p(B) before each of these: (T + 1,) float64."""
        logits, targets, mask = self.logits(batch)
        logits = logits.float()  # shape: (R, T + 1, K)
        log_z = logits.logsumexp(2)
        check_scores(log_z[mask], "the model", may_be_empty=True)
        log_p = logits.gather(2, targets.unsqueeze(2)).squeeze(2) - log_z
        begins = torch.zeros_like(log_p)
        if self.bow_correction and self._begins:
            index = torch.tensor(sorted(self._begins), device=logits.device)
            begins = logits.index_select(2, index).logsumexp(2) - log_z
        impossible = -math.inf
        log_p, begins = (each.double().nan_to_num(nan=impossible, neginf=impossible).cpu() for each in (log_p, begins))
        return [(log_p[row, : len(s) + 1], begins[row, : len(s) + 1]) for row, s in enumerate(batch)]

    def _scored(self, line: Line, scores: dict[Tokens, tuple[Tensor, Tensor]]) -> LineScore:
        """The score of a line from those of its tokenisations."""
        unk, spans = self.tokenizer.unk_token_id, list(itertools.pairwise([0, *line.ends]))
        unknown = [unk != self._end and unk in line.tokens[begin:end] for begin, end in spans]
        sizes = [end - begin for begin, end in spans]
        if line.too_long_for is not None:
            return LineScore(line.number, line.words, unknown, num_tokens=sizes, too_long_for=line.too_long_for)
        if len(line.sequences) == 1:
            ((tokens, ends),) = line.sequences
            rows = _word_sums(*scores[tokens], ends)
        else:
            rows = _word_sums_over_all([(*scores[tokens], ends) for tokens, ends in line.sequences], line.repeats)
        rows = rows.nan_to_num(nan=-math.inf, neginf=-math.inf)
        if not self.has_ends:
            rows[-1] = 0.0
        return LineScore(line.number, line.words, unknown, rows.tolist(), [0.0] * len(line.words), sizes)


def _word_sums(log_p: Tensor, begins: Tensor, ends: Sequence[int]) -> Tensor:
    """log p of each word and of the end: (W + 1,).

    Args:
        log_p, begins: of each token and the end, log p and the log p(B) before it, (T + 1,). Without a
            correction, begins is 0. ends: (W,) the number of tokens up to the end of each word.
    """
    last = len(log_p) - 1
    sums = [log_p[begin:end].sum() for begin, end in itertools.pairwise([0, *ends, last + 1])]
    after = torch.cat([begins[list(ends)], begins.new_zeros(1)])
    return torch.stack(sums) + after - torch.cat([begins.new_zeros(1), begins[list(ends)]])


def _word_sums_over_all(each: Sequence[tuple[Tensor, Tensor, Sequence[int]]], repeats: Sequence[int]) -> Tensor:
    """As `_word_sums`, of p that are sums over tokenisations, each with its `log_p`, `begins` and `ends`.

    Args:
        repeats: (W,) how many tokenisations have the same first words.
    """
    until = torch.stack([_word_sums(*one).cumsum(0) for one in each]).logsumexp(0)
    until -= torch.tensor([*repeats, 1]).log()
    return until.diff(prepend=until.new_zeros(1))


class Seq2SeqScorer(ScoringModel):
    """A translation model with the log-linear head over the words of its prior, not over a tokenizer's tokens.

    Attributes:
        model: as given.
    """

    translates = True

    def __init__(self, model: Any) -> None:
        """
        Raises:
            DataError: a model of another kind.
        """
        if not hasattr(model, "head") or getattr(model, "is_wrapped", False) or not model.head.prior.source_symbols:
            raise DataError(
                "expected a translation model over the words of a prior, source and target, found "
                f"{type(model).__name__} over other tokens; use its loss"
            )
        self.model = model
        self.vocabulary = frozenset(model.head.prior.symbols).difference(SPECIALS)

    def _line_scores(self, lines: Sequence[str], source: Sequence[str] | None, is_open: bool) -> Iterator[LineScore]:
        assert source is not None
        pairs = enumerate(zip(lines, source, strict=True), start=1)
        with _evaluating(self.model):
            while some := list(itertools.islice(pairs, LINES)):
                yield from self._score_batch(some)

    @torch.inference_mode()
    def _next_log_probs(self, prefix: str, source: str | None) -> tuple[Tensor, Callable[[int], str]]:
        symbols = self.model.head.prior.session.target.symbols
        with _evaluating(self.model):
            _, batch = self._batch([prefix], [str(source)])
            log_probs, tokens = batch.top_k(len(symbols))
        words = [symbols[token] for token in tokens[-1].tolist()]
        return log_probs[-1], words.__getitem__

    def _batch(self, lines: Sequence[str], sources: Sequence[str]) -> tuple[Tensor, Batch]:
        """Return the targets (B, T) of some lines, and the batch that predicts them."""
        head = self.model.head
        source = head.encode_source(sources)
        targets = head.encode(lines, source)
        condition = head.bind(head.previous(targets), source)
        read = self.model.model(
            input_ids=source,
            attention_mask=plain(source).ne(self.model.config.pad_token_id).long(),
            decoder_input_ids=condition.input_ids,
            return_dict=True,
        )
        return targets, head.batch(read.last_hidden_state, condition, read.encoder_last_hidden_state)

    @torch.inference_mode()
    def _score_batch(self, batch: Sequence[tuple[int, tuple[str, str]]]) -> list[LineScore]:
        head = self.model.head
        targets, of_batch = self._batch([line for _, (line, _) in batch], [source for _, (_, source) in batch])
        log_p = head.target_log_probs(of_batch, targets).double().cpu()
        check_scores(log_p[targets.cpu().ne(head.pad)], "the model", may_be_empty=True)
        scores = []
        for (number, (line, _)), tokens, values in zip(batch, targets.cpu(), log_p, strict=True):
            is_token = tokens != head.pad
            words = line.split()
            if len(words) + 1 != int(is_token.sum()):  # a word that a slot spells in several pieces is one token
                words = [head.prior.session.target.symbols[token] for token in tokens[is_token][:-1].tolist()]
            unknown = [token == head.unk or token >= head.num_words for token in tokens[is_token][:-1].tolist()]
            scores.append(LineScore(number, words, unknown, values[is_token].tolist(), [0.0] * len(words)))
        return scores


def aligned(words: Sequence[str], offsets: Sequence[tuple[int, int]]) -> tuple[list[str], list[int]]:
    """Return the words of a line, and the number of tokens up to the end of each.

    A token of a blank belongs to the next word. Words that share a token are one word, with a blank in it.

    Args:
        offsets: (T,) begin and end of each token in the words with a blank between each two.
    """
    text = " ".join(words)
    word_at = [at for at, word in enumerate(words) for _ in range(len(word) + (at > 0))]  # of each character of text
    ends = [0] * len(words)
    goes_on = [False] * len(words)
    for number, (begin, end) in enumerate(offsets, start=1):
        while end - begin > 1 and text[end - 1] == " ":
            end -= 1
        first = word_at[min(begin, len(text) - 1)]
        last = word_at[end - 1] if begin < end else first
        ends[last] = number
        goes_on[first:last] = [True] * (last - first)
    found_words, found_ends, before = [], [], list[str]()
    for word, end, is_part in zip(words, itertools.accumulate(ends, max), goes_on, strict=True):
        before.append(word)
        if not is_part:
            found_words.append(" ".join(before))
            found_ends.append(end)
            before = []
    return found_words, found_ends


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Put a model into evaluation mode, and then back."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


class ScoresTexts(ScoringModel):
    """Scores of texts as methods of a causal language model of transformers (a mixin).

    Attributes:
        tokenizer: of the lines. None: words stand between blanks, as in the prior.
    """

    tokenizer: Any = None
    config: Any
    _spelling_advice = NO_SPELLING

    @property
    def vocabulary(self) -> frozenset[str] | None:  # type: ignore[override]
        """The words of the prior. None: the tokens are those of a tokenizer."""
        return CausalScorer(self, tokenizer_of(self)).vocabulary

    def _line_scores(self, lines: Sequence[str], source: Sequence[str] | None, is_open: bool) -> Iterator[LineScore]:
        return CausalScorer(self, tokenizer_of(self)).lines(lines)

    def _next_log_probs(self, prefix: str, source: str | None) -> tuple[Tensor, Callable[[int], str]]:
        return CausalScorer(self, tokenizer_of(self))._next_log_probs(prefix, source)


def tokenizer_of(model: Any) -> Any:
    """Return the tokenizer of a model, or that of its prior if the tokens are words.

    Raises:
        DataError: the tokens are those of a tokenizer that it has not.
    """
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is not None:
        return tokenizer
    head = getattr(model, "head", None)
    if head is None or getattr(model, "is_wrapped", False):
        raise DataError(
            "expected a tokenizer, since the model's tokens are not the words of a prior, found none; set "
            "model.tokenizer, or save the tokenizer in the model's folder and read that with fairseq_llrnn.load"
        )
    return head.prior.tokenizer()
