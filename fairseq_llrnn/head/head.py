"""The log-linear head: hidden states of any network -> p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)), in plain torch.

Sizes: B batch, T time, N hypotheses, L source length, V words, S signatures, J₁ slots of evidence, H hidden width, D
embedding width, E encoder width. Probabilities are natural logarithms. Source: Dymetman & Xiao 2016, §2.

    loss = head.loss(hidden, targets, previous=previous, source=source)      # a batch at once
    state = head.start(n, source=source)                                     # a search
    values, tokens = head.top_k(hidden_now, state, k=5)
    state = head.advance(state, tokens_chosen)

`loss` and `log_probs` are made of three steps, which a training loop can also call itself: `condition` (what is known
before the network reads), `batch` (its hidden states, and rows of all classes), `target_log_probs` and others.

In training mode (`head.train()`), what a background was estimated from is left out: n-grams are cross-fitted, lexical
translations leave the sentence at hand out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background, class_log_sums
from fairseq_llrnn.backgrounds.positions import Along
from fairseq_llrnn.backgrounds.sparse_mass import Corrections
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.evidence.slots import SlotRows
from fairseq_llrnn.experts.features import ExpertFeatures
from fairseq_llrnn.experts.panel import Panel
from fairseq_llrnn.explain.explanation import Explanation, explain
from fairseq_llrnn.features.dictionary import EOS, PAD, UNK
from fairseq_llrnn.head import expert_terms, target_terms
from fairseq_llrnn.head.class_rows import class_scores, rows_of_classes, rows_of_slots, widened
from fairseq_llrnn.head.expert_terms import refuse_other_experts
from fairseq_llrnn.head.fingerprint import check_fingerprint, fingerprint_of
from fairseq_llrnn.head.records import Batch, Condition, RowPair, Rows, State, Step, shares_and_classes
from fairseq_llrnn.head.zero_mass import FIX_ZERO_MASS, ShownWords, refuse_forbidden
from fairseq_llrnn.open_vocabulary.mixture import OpenMixture
from fairseq_llrnn.open_vocabulary.open_strings import OpenStrings
from fairseq_llrnn.output.class_sampling import ClassSampler
from fairseq_llrnn.output.context_classes import strings_in, strings_of
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.output.learned_temperature import LearnedTemperature
from fairseq_llrnn.output.log_linear import LogLinearOutput, class_log_probs
from fairseq_llrnn.prior.parts.evidence import EvidencePart
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart, open_table
from fairseq_llrnn.prior.prior import Prior


class LogLinearHead(nn.Module):
    """The output layer (and, if asked for, the input embedding) over a prior."""

    prior_fingerprint: Tensor
    log_sizes: Tensor  # (S,)

    def __init__(
        self,
        prior: Prior,
        hidden_size: int,
        *,
        embed_size: int | None = None,
        tie_embedding: bool = False,
        source_size: int | None = None,
        experts: Panel | None = None,
        learn_temperature: bool = False,
        sampled_classes: int = 0,
        formula: str = "signature",
    ) -> None:
        """
        Args:
            hidden_size: H, the width of the network's hidden states.
            embed_size: D, for `embed`; None: the network embeds tokens itself.
            tie_embedding: whether `embed` and the output share their weights per feature; D must be H then.
            source_size: E, the width of an encoder's states, for networks that read a source; None: a language model.
            experts: opened with this prior (experts/panel.py).
            learn_temperature: the network chooses how far a background of n-grams or an automaton counts
                (output/learned_temperature.py).
            sampled_classes: train with about so many signatures, drawn from the background; 0: with all of them.
            formula: "signature", or "plain", which computes every word: slow, to check.

        Raises:
            OptionError: options that exclude each other, or that the prior cannot have.
        """
        super().__init__()
        self.prior = prior
        self.num_words, self.hidden_size = len(prior.symbols), hidden_size
        self.pad, self.eos, self.unk = (prior.symbols.index(symbol) for symbol in (PAD, EOS, UNK))
        class_of = torch.from_numpy(prior.output.class_of.copy())
        self.output = LogLinearOutput(prior.output.features, class_of, hidden_size, formula)
        self.embedding = None if embed_size is None else self._new_embedding(embed_size, tie_embedding)
        self.background = prior.background(has_source=source_size is not None)
        self.background.gates(hidden_size)
        self.slot_rows: SlotRows | None = None
        if prior.find(EvidencePart) is not None and source_size is not None:
            self._refuse_plain("a prior that has evidence")
            self.slot_rows = SlotRows(source_size, hidden_size)
        self.opened: OpenMixture | None = None
        self.strings: OpenStrings | None = None
        table = open_table(prior)
        if table is not None:
            self._refuse_plain("a prior that has an open vocabulary")
            self.opened = OpenMixture(table.vocabulary, int(self.output.class_of[self.unk]))
            self.strings = OpenStrings(self.opened, table, self.num_words, self.unk)
        self.experts: ExpertFeatures | None = None
        if experts is not None:
            self._refuse_plain("--expert")
            self.experts = ExpertFeatures(experts, prior.output.features, hidden_size)
        self.temperature = self._new_temperature() if learn_temperature else None
        self.sampler: ClassSampler | None = None
        if sampled_classes:
            self.train_with_samples(sampled_classes)
        sizes = target_terms.log_class_sizes(self.background, [self.eos, self.unk])
        self.register_buffer("log_sizes", sizes, persistent=False)
        self.register_buffer("prior_fingerprint", fingerprint_of(prior))

    # ---- parts --------------------------------------------------------------------------------------------------

    def _new_embedding(self, size: int, tied: bool) -> FeatureEmbedding:
        """ψ-embeddings of V words, and of the open classes, if there are any."""
        prior = self.prior
        if tied and size != self.hidden_size:
            raise OptionError(
                f"tie_embedding: expected embed_size {self.hidden_size}, which is hidden_size, found {size}"
            )
        if tied and prior.input.features.names != prior.output.features.names:
            raise OptionError(
                "tie_embedding: expected the same features in input and output, but the prior was built with other "
                "input features; build it without them, or do not tie"
            )
        opened = prior.find(OpenVocabularyPart)
        read = prior.input if opened is None else opened.vocabulary.readable(prior.input)
        class_of = torch.from_numpy(read.class_of.copy())
        return FeatureEmbedding(read.features, class_of, size, self.output.weight if tied else None)

    def _new_temperature(self) -> LearnedTemperature:
        if not self.background.sparse or self.slot_rows is not None:
            raise OptionError(
                "--learn-background-temperature: expected a prior with n-grams or an automaton, and without evidence; "
                "build one with `llrnn prior --background ngram:…` or `automaton:…`, or leave the option out"
            )
        if self.experts is not None:
            raise OptionError("--learn-background-temperature: not supported with --expert; leave out one of them")
        return LearnedTemperature(self.hidden_size, self.output.rows.num_rows)

    def _refuse_plain(self, what: str) -> None:
        if self.output.formula == "plain":
            raise OptionError(f"--output-formula plain: not supported with {what}; use signature")

    def train_with_samples(self, expected: int) -> None:
        """Train with about `expected` signatures, drawn anew for every batch (output/class_sampling.py).

        Raises:
            OptionError: experts or the plain formula, which need all classes.
        """
        if self.output.formula == "plain" or self.experts is not None:
            other = "--output-formula plain" if self.experts is None else "--expert"
            raise OptionError(f"--sampled-classes: not supported with {other}; leave one of them out")
        weights = torch.from_numpy(self.prior.log_weights.copy()).unsqueeze(0)
        log_mass = class_log_sums(weights, self.output.class_of.cpu(), self.output.rows.num_rows).squeeze(0)
        if self.opened is not None:
            log_mass[self.opened.of_class] = NEGATIVE_INFINITY  # it is summed apart
        self.sampler = ClassSampler(log_mass, expected).to(self.output.weight.device)

    @property
    def reads_open_words(self) -> bool:
        """Whether unknown words are read by their open class: where tokens are embedded by their features."""
        return self.opened is not None and self.embedding is not None

    # ---- input ----------------------------------------------------------------------------------------------------

    def previous(self, targets: Tensor) -> Tensor:
        """The tokens before each target, which a network reads: `</s>`, then all but the last; (B, T) -> (B, T)."""
        return torch.cat([torch.full_like(targets[:, :1], self.eos), targets[:, :-1]], dim=1)

    def embedding_rows(self) -> Tensor:
        """The embeddings of all input signatures, to hand to `embed` several times: (R, D)."""
        return self._embedding().table()

    def embed(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        """ψ-embeddings: tokens (…,) -> (…, D). Strings outside the dictionary are read as `<unk>`.

        Args:
            rows: of `embedding_rows`, where they are used more than once.
        """
        open_words = self.num_words if self.opened is None else self._embedding().class_of.numel()
        return self._embedding()(tokens.masked_fill(tokens >= open_words, self.unk), rows)

    def _embedding(self) -> FeatureEmbedding:
        if self.embedding is None:
            raise OptionError("LogLinearHead.embed: expected a head made with embed_size, found one without; give it")
        return self.embedding

    # ---- a batch: before the network reads it, after, and what a criterion asks --------------------------------------

    def condition(self, previous: Tensor, source: Tensor | None = None) -> Condition:
        """What is known of a batch before the network reads it.

        Args:
            previous: the tokens before each position, (B, T): `</s>` first. source: (B, L), padded.
        """
        known = self._known(previous)
        background, left_out = self.background, None
        if self.training:
            left_out = known if self.strings is None else self.strings.as_in_text(previous, known)
        if source is not None:
            background = background.given(source, left_out)
        if left_out is not None:
            background = background.held_out(left_out)
        background = self._with_experts(background, source)
        return Condition(background, known, self._readable(previous, known, background, None))

    def batch(self, hidden: Tensor, condition: Condition, source_states: Tensor | None = None) -> Batch:
        """Hidden states (B, T, H) of a conditioned batch, with the rows of all classes and the masses.

        Args:
            source_states: of the encoder, (B, L, E), where the prior has evidence.
        """
        background = condition.background.with_hidden(hidden.flatten(0, 1))
        rows = self._rows(background, source_states, None)
        exceptions: RowPair | None = None
        if self.experts is not None:
            hidden, rows, exceptions = expert_terms.in_batch(
                self.experts, background, hidden, condition.previous, lambda: self._widened(rows, background)
            )
        positions = Along(background, condition.previous)
        masses = positions.masses
        if self.temperature is not None and isinstance(masses, Corrections):
            masses = self.temperature.applied(masses, hidden.flatten(0, 1))
        return Batch(hidden, positions, masses, rows, exceptions)

    def class_scores(self, batch: Batch) -> Tensor:
        """aᵀφ of all classes: (B, T, S + J), at least float32."""
        return class_scores(self.output, self.opened, batch.hidden, batch.rows, batch.rows.slots, batch.exceptions)

    def target_log_probs(self, batch: Batch, targets: Tensor) -> Tensor:
        """log p(target | K) in nats: targets (B, T) -> (B, T); −inf where the background forbids it."""
        return target_terms.target_log_probs(self.output, self.strings, batch, targets)

    def smoothing_gain(self, batch: Batch, targets: Tensor) -> Tensor:
        """What label smoothing adds to these log-probabilities, in units of its ε: (B, T)."""
        return target_terms.smoothing_gain(self.output, self.strings, self.log_sizes, batch, targets)

    def adaptor_norm(self, hidden: Tensor, p: float = 2.0) -> Tensor:
        """‖a(K)‖ₚ at every position, `Batch.hidden` (B, T, H'): (B, T); paper, §2.2. Experts' weights are in a."""
        return target_terms.adaptor_norm(self.output, self.experts, hidden, p)

    def are_slots(self, batch: Batch, targets: Tensor) -> Tensor:
        """Which of the targets (B, T) a slot of evidence stands for: (B, T) bool."""
        words = targets if self.slot_rows is not None else targets.masked_fill(targets >= self.num_words, self.unk)
        classes = batch.background.classes_along(words)
        static = self.output.rows.num_rows
        slots = 0 if batch.rows.slots is None else batch.rows.slots[0].size(1)
        return (classes >= static) & (classes < static + slots)

    def word_log_probs(self, batch: Batch, scores: Tensor | None = None) -> Tensor:
        """log p of all words, and of strings that slots offer: (B, T, V + J₁). scores: of `class_scores`."""
        scores = self.class_scores(batch) if scores is None else scores
        classes = class_log_probs(scores, batch.log_mass)
        return batch.background.word_log_probs_along(classes, batch.positions.previous)

    # ---- the same in one line -------------------------------------------------------------------------------------

    def loss(
        self,
        hidden: Tensor,
        targets: Tensor,
        *,
        previous: Tensor | None = None,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
        label_smoothing: float = 0.0,
        adaptor_penalty: float = 0.0,
        reduction: str = "mean",
    ) -> Tensor:
        """−log p(target | K) in nats, over all targets but padding.

        Args:
            hidden: (B, T, H). targets: (B, T), padded with `<pad>`.
            previous: the tokens before each position, (B, T); None: `self.previous(targets)`.
            source: (B, L), where the background depends on a source. source_states: as in `batch`.
            label_smoothing: the share ε of every target that is spread over all words that may come next.
            adaptor_penalty: the weight of ‖a(K)‖₂ (paper, §2.2).
            reduction: "mean" over the targets, "sum", or "none": (B, T), 0 at padding.

        Raises:
            DataError: shapes that do not fit; a target to which the background gives no mass.
        """
        if reduction not in ("mean", "sum", "none"):
            raise OptionError(f"reduction: expected mean, sum or none, found {reduction!r}")
        previous = self.previous(targets) if previous is None else previous
        self._check_shapes(hidden, previous, targets)
        batch = self.batch(hidden, self.condition(previous, source), source_states)
        log_prob = self.target_log_probs(batch, targets)
        self.refuse_forbidden(log_prob, targets)
        real = targets.ne(self.pad)
        loss = -log_prob.masked_fill(~real, 0.0)
        if label_smoothing:
            loss = loss - label_smoothing * self.smoothing_gain(batch, targets).masked_fill(~real, 0.0)
        if adaptor_penalty:
            loss = loss + adaptor_penalty * self.adaptor_norm(batch.hidden).masked_fill(~real, 0.0)
        if reduction == "none":
            return loss
        return loss.sum() if reduction == "sum" else loss.sum() / real.sum().clamp_min(1)

    def log_probs(
        self,
        hidden: Tensor,
        *,
        previous: Tensor | None = None,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
    ) -> Tensor:
        """log p of all words at every position: hidden (B, T, H) -> (B, T, V + J₁), J₁ the slots of evidence.

        Args:
            previous: (B, T), which only a background without context does without.

        Raises:
            DataError: shapes that do not fit, or no `previous` where the background needs it.
        """
        if previous is None:
            if not self.background.constant or self.experts is not None:
                raise DataError(
                    "LogLinearHead.log_probs: expected `previous`, the tokens before each position, since the "
                    "background depends on them, found None; give it (B, T)"
                )
            previous = torch.full(hidden.shape[:2], self.eos, device=hidden.device)
        self._check_shapes(hidden, previous, previous)
        return self.word_log_probs(self.batch(hidden, self.condition(previous, source), source_states))

    def explain(
        self,
        hidden: Tensor,
        tokens: Tensor,
        *,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
        top: int = 5,
    ) -> list[Explanation]:
        """Why each token of one sentence has its probability: log p = log b + aᵀφ − log Z, term by term.

        Args:
            hidden: (1, T, H), the network's states before each token. tokens: (T,), the last one `</s>`.
            source: (1, L). source_states: (1, L, E). top: how many predictions, features and source words to name.
        """
        with torch.inference_mode():
            condition = self.condition(self.previous(tokens.unsqueeze(0)), source)
            return self.explain_batch(self.batch(hidden, condition, source_states), tokens, top)

    def explain_batch(self, batch: Batch, tokens: Tensor, top: int) -> list[Explanation]:
        """As `explain`, of a batch of one sentence that the network has read."""
        slot_rows = None if batch.rows.slots is None else batch.rows.slots[0][0]  # shape: (J₁, H')
        opened = None
        if self.opened is not None and batch.rows.open_classes is not None:
            opened = self.opened, self.opened.scores(batch.hidden[0], batch.rows.open_classes)
        scores, masses, powered = self.class_scores(batch)[0], batch.log_mass[0], None
        if self.temperature is not None:
            before = batch.positions.log_mass[0]
            powered = (masses - before).masked_fill(before.isneginf(), 0.0)
            scores, masses = scores + powered, before
        given = self.prior, self.output, batch.background, batch.hidden[0], tokens
        return list(explain(*given, scores, masses, top, slot_rows, opened, powered))

    # ---- a search ----------------------------------------------------------------------------------------------------

    def start(
        self,
        batch_size: int,
        *,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
        pinned: Sequence[int] = (),
    ) -> State:
        """The state of N = `batch_size` hypotheses that have written nothing.

        Args:
            source: (N, L); equal neighbours, as a beam search has them, are looked at once. source_states: (N, L, E).
            pinned: tokens whose probabilities every step is asked for (`Step.log_probs_of_pinned`).
        """
        background, sentence, sources = self.background, None, source
        if source is not None:
            sources, sentence = torch.unique_consecutive(source, return_inverse=True, dim=0)
            background = background.given(sources)
        background = self._with_experts(background, sources)
        states = background.start(batch_size if sentence is None else len(sources))  # type: ignore[arg-type]
        states = states if sentence is None else states[sentence]
        rows = self._rows(background, source_states, sentence)
        if self.experts is not None:
            rows = self._widened(rows, background)
        state = State(background, states, rows)
        if not pinned:
            return state
        tokens = torch.tensor(list(pinned), device=states.device)
        shares = None
        if background.constant:
            shares = shares_and_classes(background, states, tokens.expand(len(states), -1))
        return replace(state, pinned=tokens, pinned_shares=shares)

    def advance(self, state: State, tokens: Tensor) -> State:
        """The state after every hypothesis has written its token (N,), or several ones (N, t)."""
        for token in [tokens] if tokens.dim() == 1 else tokens.unbind(1):
            states = state.background.advance(state.states, self._known(token))
            rows = state.rows if self.experts is None else self._widened(state.rows, state.background)
            state = replace(state, states=states, rows=rows, length=state.length + 1)
        return state

    def step(self, hidden: Tensor, state: State) -> Step:
        """The distribution of the next token: hidden states (N, H)."""
        background, hidden = state.reachable.with_hidden(hidden), hidden.unsqueeze(1)
        slots, exceptions = state.rows.slots, None
        if slots is not None:  # every hypothesis knows its sentence
            layer, own = strings_of(state.background, state.states)
            sentence = layer.contexts_of(own)
            slots = slots[0][sentence], slots[1][sentence]
        if self.experts is not None:
            hidden, exceptions = expert_terms.in_step(self.experts, background, hidden, state.states, state.rows, slots)
        scores = class_scores(self.output, self.opened, hidden, state.rows, slots, exceptions)[:, 0]
        masses: Tensor | Corrections | None = background.corrections(state.states)
        if isinstance(masses, Corrections) and self.temperature is not None:
            masses = self.temperature.applied(masses, hidden[:, 0])
        return Step(scores, background.log_mass(state.states) if masses is None else masses, background, state)

    def top_k(self, hidden: Tensor, state: State, k: int, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
        """The k most probable next tokens, exactly: hidden (N, H) -> log p and tokens, (N, k) each, the best first.

        Args:
            temperature: divides aᵀφ; the background is not tempered.
        """
        return self.tempered(self.step(hidden, state), temperature).top_k(k)

    @staticmethod
    def tempered(step: Step, temperature: float) -> Step:
        """The step with aᵀφ divided by a temperature."""
        return step if temperature == 1.0 else replace(step, scores=step.scores / temperature)

    def readable(self, tokens: Tensor, state: State) -> Tensor:
        """Tokens (N, t) of hypotheses as the network may read them: without ids of strings that it has no row for."""
        return self._readable(tokens, self._known(tokens), state.background, state.states)

    def possible(self, targets: Tensor, source: Tensor | None = None) -> Tensor:
        """Which sentences (B, T), padded, the background gives mass from the first word to the last: (B,) bool.

        To leave those out of a text that a grammar has not: `loss` refuses them. source: (B, L).
        """
        condition = self.condition(self.previous(targets), source)
        share = Along(condition.background, condition.previous).log_share(self._known(targets))
        return (share.isfinite() | targets.eq(self.pad)).all(1)

    # ---- checks ---------------------------------------------------------------------------------------------------

    def refuse_forbidden(
        self, log_prob: Tensor, targets: Tensor, ids: Tensor | None = None, fix: str = FIX_ZERO_MASS
    ) -> None:
        """Raise DataError for a target (B, T), but padding, whose log_prob (B, T) is −inf: its loss would be infinite.

        Args:
            ids: (B,) the samples' numbers, from zero. fix: what to do about it.
        """
        refuse_forbidden(log_prob, targets, ShownWords(self._word_of, self.pad, self.eos), ids, fix)

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Refuse weights that were trained beside another prior, other experts or options; `prefix` ends in a dot.

        Raises:
            PriorError, OptionError: with what differs.
        """
        check_fingerprint(self.prior_fingerprint, state_dict.get(f"{prefix}prior_fingerprint"), self.prior.folder)
        given = 0 if self.experts is None else len(self.experts.panel.experts)
        refuse_other_experts("--expert", "the checkpoint", state_dict.get(f"{prefix}experts.weight"), given)
        if self.temperature is not None:  # weights of no learned temperature begin as zeros, and change nothing
            for part, value in self.temperature.state_dict().items():
                state_dict.setdefault(f"{prefix}temperature.{part}", torch.zeros_like(value))
        elif f"{prefix}temperature.weight" in state_dict:
            raise OptionError(
                "--learn-background-temperature: expected this option, with which the checkpoint was trained; give it"
            )

    def check_prior(self) -> None:
        """Refuse weights that something else than `load_state_dict` has put here, if they are of another prior.

        Raises:
            PriorError: with both fingerprints.
        """
        check_fingerprint(fingerprint_of(self.prior), self.prior_fingerprint, self.prior.folder)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        self.check_weights(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _check_shapes(self, hidden: Tensor, previous: Tensor, targets: Tensor) -> None:
        if hidden.dim() != 3 or hidden.size(2) != self.hidden_size:
            raise DataError(
                f"LogLinearHead: expected hidden states (B, T, {self.hidden_size}), found {tuple(hidden.shape)}; give "
                "those of the last layer, batch first"
            )
        for name, tokens in (("previous", previous), ("targets", targets)):
            if tokens.shape != hidden.shape[:2]:
                raise DataError(
                    f"LogLinearHead: expected {name} (B, T) = {tuple(hidden.shape[:2])}, as the hidden states have "
                    f"them, found {tuple(tokens.shape)}; give one token for each position"
                )

    # ---- small parts ----------------------------------------------------------------------------------------------

    def _word_of(self, token: int) -> str:
        symbols = self.prior.session.target.symbols
        return symbols[token] if token < len(symbols) else UNK

    def _known(self, tokens: Tensor) -> Tensor:
        """Tokens as the background knows them: one with slots knows strings outside the dictionary itself."""
        return tokens if self.strings is None or self.slot_rows is not None else self.strings.known(tokens)

    def _readable(self, tokens: Tensor, known: Tensor, background: Background, states: Tensor | None) -> Tensor:
        read = background.readable(known, states)
        if self.strings is not None and self.slot_rows is None and self.reads_open_words:
            return self.strings.read_as(tokens, read)
        return read

    def _with_experts(self, background: Background, source: Tensor | None) -> Background:
        return background if self.experts is None else self.experts.bind(background, source)

    def _rows(self, background: Background, source_states: Tensor | None, sentence: Tensor | None) -> Rows:
        layer, slots = strings_in(background), None
        if layer is not None:
            if self.slot_rows is None or source_states is None:
                raise DataError(
                    "LogLinearHead: expected source_states, the encoder's states (B, L, E), since the prior has "
                    "evidence and the source was given, found None; give them, and source_size when the head is made"
                )
            slots = rows_of_slots(self.slot_rows, self.output, layer.source, source_states, sentence)
        return rows_of_classes(self.output, self.opened, slots, self.sampler if self.training else None)

    def _widened(self, rows: Rows, background: Background) -> Rows:
        """The rows with columns for all that the experts have named; the same where that is no more than before."""
        assert self.experts is not None
        if rows.signatures[0].size(1) == self.experts.width:
            return rows
        layer = strings_in(background)
        return widened(rows, self.experts, self.opened, None if layer is None else layer.source)
