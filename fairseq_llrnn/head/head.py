"""The log-linear head: hidden states of any network -> p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)), in plain torch.

Sizes: B batch, T time, N positions (B·T) or hypotheses, L source length, V words, S signatures, J context classes, J₁
context classes for source strings, H hidden width, H' = H plus the columns of class sources, E encoder width.
Probabilities are natural logarithms. Source: Dymetman & Xiao 2016, §2.

    loss = head(hidden, targets, previous=previous, source=source)           # of a batch; also head.loss
    state = head.start(n, source=source)                                     # a search: search.py
    values, tokens = head.top_k(hidden_now, state, k=5)
    state = head.advance(state, tokens_chosen)

`loss` and `log_probs` have three steps, which a training loop can also call: `bind` (before the network reads the
batch), `batch` (hidden states and rows of all classes), then `target_log_probs` or another method of a batch.

    background.view_of(previous, hidden)         ->  class masses log B_K(σ), and shares: backgrounds/background.py
    normaliser.compose_rows(…), source.rows(…)   ->  rows E of signatures, and rows of context classes
    normalised.log_prob(…)                       ->  log p(target): functional.log_linear_nll, if log Z is exact

The arguments of the constructor choose the input (`embedding`), the sum log Z (`normaliser`, output/normalisers.py),
more classes (`classes`, output/class_source.py) and a learned change of the class weights (`mass_change`).

In training mode (`head.train()`), backgrounds exclude the current text from their estimates: n-grams are
cross-fitted, lexical translations leave the current sentence out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.background import BoundBackground, View
from fairseq_llrnn.backgrounds.by_source import ReadySlots, bound_to
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, ClassWeights, broadcast_groups, class_log_sums
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import BOS, EOS, PAD, UNK, plain
from fairseq_llrnn.functional import outside_autocast, to_autocast
from fairseq_llrnn.head import inputs, losses, search
from fairseq_llrnn.head.checks import check_rows, check_source_ids, check_token_ids, fingerprint_of
from fairseq_llrnn.head.inputs import InputEmbedding
from fairseq_llrnn.head.stored_head import StoredHead, tie
from fairseq_llrnn.output.class_source import ClassSource, ClassSourceOf, NormaliserOf, Place
from fairseq_llrnn.output.context_classes import ContextClasses, ContextView, each_layer, layers_of
from fairseq_llrnn.output.normalisers import Exact, LogLinearOutput, Normaliser, SlotScores
from fairseq_llrnn.output.records import Batch, Condition, RowPair, Rows, chunk_slices
from fairseq_llrnn.prior.prior import Prior

if TYPE_CHECKING:
    from fairseq_llrnn.explain.explanation import Explanation
    from fairseq_llrnn.open_vocabulary.open_strings import OpenWords

SAMPLE = 32  # random bytes that detect a move that loses the contents of tensors


class MassChange(Protocol):
    """A module that changes class weights, given the hidden states."""

    name: ClassVar[str]  # of the module in the head, and so of its weights in a checkpoint

    def applied(self, class_weights: ClassWeights, hidden: Tensor) -> ClassWeights:
        """Return the changed class weights of N positions. hidden: (N, H)."""
        ...


class LogLinearHead(StoredHead):
    """The output layer, and optionally the input embedding, over a prior."""

    class_sizes: Tensor  # (S,) int64
    open_words: OpenWords | None  # the source that spells <unk>, if the vocabulary is open

    start, advance, step, top_k = search.start, search.advance, search.step, search.top_k
    to_input_ids = search.to_input_ids
    target_log_probs, smoothing_gain = losses.target_log_probs, losses.smoothing_gain
    adaptor_norm, sources_of, word_log_probs = losses.adaptor_norm, losses.sources_of, losses.word_log_probs
    possible, loss_of, regularised = losses.possible, losses.loss_of, losses.regularised
    encode, encode_source, decode, previous = inputs.encode, inputs.encode_source, inputs.decode, inputs.previous

    def __init__(
        self,
        prior: Prior,
        hidden_size: int,
        *,
        embedding: Callable[[LogLinearHead], nn.Module] | None = None,
        source_size: int | None = None,
        classes: Sequence[ClassSourceOf] = (),
        mass_change: Callable[[LogLinearHead], MassChange] | None = None,
        normaliser: NormaliserOf = Exact,
        initial_scale: float | None = 1.0,
    ) -> None:
        """Build a head for a prior.

        Args:
            hidden_size: H, the width of the network's hidden states.
            embedding: makes the module of `embed`, e.g. FeatureInput(D). None: the network embeds tokens itself.
            source_size: E, the width of an encoder's states, for networks with a source. None: a language model.
            classes: class sources in addition to those of the prior's parts; one with the name of a part's source
                replaces it.
            mass_change: makes a module that changes the class weights, given the hidden states.
            normaliser: how log Z is summed.
            initial_scale: the standard deviation of initial scores aᵀφ, for hidden states of unit variance, as after a
                layer normalisation: rows Φ W have a root mean square of initial_scale / √H. For hidden states of
                standard deviation s, use 1 / s. 0: the model starts as its background. None, for LSTMs: weights from
                U(−1.6/√H, 1.6/√H), which is U(−0.1, 0.1) at H = 256.

        Raises:
            OptionError: a value out of range, an impossible combination, or an option that the prior does not support.
            TypeError: a path instead of a prior, or a module instead of a function that makes one.
        """
        if isinstance(prior, (str, Path)):
            raise TypeError(f"LogLinearHead: expected a prior, found the path {str(prior)!r}; read it with Prior.load")
        if not hasattr(hidden_size, "__index__") or hidden_size < 1:
            raise OptionError(f"LogLinearHead: hidden_size {hidden_size!r}: expected a whole number of at least 1")
        if initial_scale is not None and not 0.0 <= initial_scale < math.inf:  # NaN is not
            raise OptionError(
                f"LogLinearHead: initial_scale {initial_scale}: expected a number of at least 0, or None; the default, "
                "1.0, is for layer-normalised hidden states"
            )
        for option, maker in (("embedding", embedding), ("mass_change", mass_change), ("normaliser", normaliser)):
            if maker is not None and (isinstance(maker, nn.Module) or not callable(maker)):
                raise TypeError(
                    f"LogLinearHead: {option}: expected a function that makes a module for the head, such as "
                    f"FeatureInput(D) for embedding, found {maker!r:.60}; pass such a function, or leave it out"
                )
        super().__init__()
        self.prior = prior
        self.num_words, self.hidden_size, self.source_size = len(prior.symbols), hidden_size, source_size
        self.pad, self.eos, self.unk = (prior.symbols.index(symbol) for symbol in (PAD, EOS, UNK))
        class_of = torch.from_numpy(prior.output.class_of.copy())
        self.output = LogLinearOutput(prior.output.features, class_of, hidden_size, initial_scale)
        self.attached: dict[str, Any] = {}  # modules of this head, by their roles
        self.embedding: InputEmbedding | None = None
        if embedding is not None:
            self._keep("embedding", embedding(self))
        self.arguments: dict[str, Any] = {
            "embedding": embedding, "source_size": source_size, "classes": classes, "mass_change": mass_change,
            "initial_scale": initial_scale,
        }  # fmt: skip
        with torch.device("cpu"):  # for computed values, even if parameters are made on the meta device
            self._make_parts(classes, mass_change, normaliser)
        self.register_load_state_dict_post_hook(tie)

    def _make_parts(
        self,
        classes: Sequence[ClassSourceOf],
        mass_change: Callable[[LogLinearHead], MassChange] | None,
        normaliser: NormaliserOf,
    ) -> None:
        prior = self.prior
        self.background = prior.background(has_source=self.source_size is not None)
        self.background.gates(self.hidden_size)
        self.sources = self._new_sources(classes)  # of context classes, the innermost first
        self.__dict__["open_words"] = self._modules.get("open_words")  # without a second name in torch's registry
        self.has_source_strings = self.source_size is not None and prior.has_source_strings
        self.replaced = None if self.open_words is None else self.open_words.replaces
        if self.embedding is not None and self.open_words is not None and not self.has_source_strings:
            self.embedding.input_id_of = self.open_words.input_id_of
        self.change: MassChange | None = None
        if mass_change is not None:
            self._keep("change", mass_change(self))
        self.normaliser: Normaliser
        self.set_normaliser(normaliser)
        leave_out = self.output.class_of.new_tensor([self.eos, self.unk])
        sizes = torch.bincount(self.background.class_of, minlength=self.background.num_classes)
        sizes[self.background.class_of[leave_out]] = 0  # excluded from label smoothing
        self.register_buffer("class_sizes", sizes, persistent=False)
        self.register_buffer("prior_fingerprint", fingerprint_of(prior))

    # ---- modules ----------------------------------------------------------------------------------------------------

    def _keep(self, role: str, module: Any) -> None:
        """Register a module under its own name, as in checkpoints, and as an attribute with the name of its role."""
        self._modules[module.name] = module
        self.attached[role] = module
        self.__dict__[role] = module  # not in torch's registry, which would give its weights a second name

    def _new_sources(self, factories: Sequence[ClassSourceOf]) -> list[ClassSource]:
        # sources that widen all rows come last: their words may have left classes of the others
        of_options = sorted((make(self) for make in factories), key=lambda source: source.num_columns > 0)
        taken = {source.name for source in of_options}
        parts = [part for part in self.prior.parts if part.class_name and part.class_name not in taken]
        of_parts = []
        for part in parts:
            if (source := part.class_source(self)) is None:
                continue
            if source.name != part.class_name:
                raise OptionError(
                    f"LogLinearHead: part {part.kind}: expected a class source with the part's class_name, "
                    f"{part.class_name!r}, found {source.name!r}; give both the same name"
                )
            of_parts.append(source)
        sources = [*sorted(of_parts, key=lambda source: source.kind is None), *of_options]
        for source in sources:
            self._modules[source.name] = source
        return sources

    def set_normaliser(self, normaliser: NormaliserOf) -> None:
        """Replace the normaliser."""
        self.arguments["normaliser"] = normaliser
        module = normaliser(self).to(self.output.weight.device)
        if "normaliser" in self.attached:
            del self._modules[self.normaliser.name]
        self._keep("normaliser", module)
        if self.embedding is not None:
            self.embedding.sparse_gradients = module.sparse_gradients

    def static_log_mass(self) -> Tensor:
        """Return the log masses of the signatures without context: (S,), with −inf for a replaced signature.

        A word that b₀ forbids but another part of a mixture allows gets the mean weight of the words of b₀.
        """
        weights = torch.from_numpy(self.prior.log_weights.copy())
        possible = weights.isfinite()
        only_elsewhere = self.background.bind().possible_words().cpu() & ~possible
        only_elsewhere[[self.prior.index(BOS), self.pad]] = False
        weights[only_elsewhere] = weights[possible].logsumexp(0) - math.log(int(possible.sum()))
        classes = self.output.class_of.cpu(), self.output.rows.num_rows
        log_mass = class_log_sums(weights.unsqueeze(0), *classes).squeeze(0)
        if self.replaced is not None:
            log_mass[self.replaced] = NEGATIVE_INFINITY  # summed separately
        return log_mass

    # ---- batches ----------------------------------------------------------------------------------------------------

    def bind(
        self, previous: Tensor, source: Tensor | None = None, text: Tensor | None = None, slots: ReadySlots = None
    ) -> Condition:
        """Bind the background to a batch, before the network reads it.

        Args:
            previous: the tokens before each position, (B, T), first `</s>`. source: (B, L), padded.
            text: the text of backgrounds if training reads a changed text, (B, T'), T' ≥ T, one sentence a row, first
                `</s>`. None: `previous`. slots: of the source, if a data set has made them.

        Raises:
            DataError: an empty batch, a source without a row for each sentence, or strings of sources and no source.
        """
        check_rows(previous.shape, "tokens (B, T)", "sentences", source=source)
        if self.has_source_strings and not torch.compiler.is_compiling():
            check_source_ids(self.prior, source, previous)
        as_whole = self.training or torch.is_grad_enabled() or torch.compiler.is_compiling()
        chunks = [slice(None)] if as_whole else chunk_slices(previous, self.background.bind())
        tokens, left_out = self.for_background(previous), None
        if self.training:
            words = previous if text is None else text
            left_out = self.for_background(words)
            if self.open_words is not None:
                left_out = self.open_words.restore_original_tokens(words, left_out)
            left_out = left_out.masked_fill(left_out >= self.num_words, self.unk)
        if len(chunks) == 1:
            backgrounds = [(chunks[0], self.bound_background(source, left_out, slots))]
        else:
            backgrounds = [(rows, self.bound_background(None if source is None else source[rows])) for rows in chunks]
        read = tokens
        if self.has_source_strings:
            parts = [(background, tokens[rows]) for rows, background in backgrounds]
            read = torch.cat([background.to_input_ids(part, background.start(len(part))) for background, part in parts])
        if self.embedding is not None:
            read = self.embedding.to_input_ids(previous, read)
        return Condition(backgrounds, tokens, read)

    def bound_background(
        self, source: Tensor | None = None, text: Tensor | None = None, slots: ReadySlots = None
    ) -> BoundBackground:
        """Return the background of a batch with the classes of all sources. Arguments as in `BySource.bind`."""
        background = bound_to(self.background, source, text, slots)
        for module in self.sources:
            background = module.bind(background, None if source is None else plain(source))
        return background

    def batch(self, hidden: Tensor, condition: Condition, source_states: Tensor | None = None) -> Batch:
        """Return the batch of hidden states (B, T, H), with the rows of all classes and the class weights.

        Args:
            source_states: of the encoder, (B, L, E), if classes of the prior use them.

        Raises:
            DataError: source_states are needed but missing, or do not have one row per sentence.
        """
        check_rows(hidden.shape[:1], "hidden states (B, T, H)", "sentences", source_states=source_states)
        if source_states is not None and (self.source_size is None or source_states.size(-1) != self.source_size):
            raise DataError(
                f"LogLinearHead: source_states: expected width {self.source_size}, the head's source_size, found "
                f"{source_states.size(-1)}; make the head with source_size={source_states.size(-1)}"
            )
        hidden = to_autocast(hidden)

        def make_batch(sentences: slice, background: BoundBackground, shared: Rows | None = None) -> Batch:
            states_of = None if source_states is None else source_states[sentences]
            view = background.view_of(condition.previous[sentences], hidden[sentences].flatten(0, 1))
            return self._scored(hidden[sentences], view, self._rows(background, states_of, shared), sentences=sentences)

        (sentences, background), *later = condition.backgrounds
        with outside_autocast(hidden):
            first = make_batch(sentences, background)
        rest = tuple(partial(make_batch, *chunk, first.rows) for chunk in later)
        return replace(first, rest=rest) if rest else first

    def for_background(self, tokens: Tensor) -> Tensor:
        """Replace tokens from V on by <unk>, unless classes of the background contain strings."""
        return tokens if self.has_source_strings else tokens.masked_fill(tokens >= self.num_words, self.unk)

    def _nearest_source(self, layer: ContextClasses) -> ClassSource | None:
        """Return the source for the type of a layer's classes, or for its nearest base class, or None.

        A subclass without a source of its own has the rows of its base class, as QuotaSlots those of EvidenceSlots.
        """
        of_kind = {source.kind: source for source in reversed(self.sources)}  # the first of each kind
        return next((of_kind[kind] for kind in type(layer.source).__mro__ if kind in of_kind), None)

    def source_of(self, layer: ContextClasses) -> ClassSource:
        """Return the class source of a layer.

        Raises:
            DataError: there is none. OptionError: its strings cannot occur in texts.
        """
        if layer.source.unk is not None and not self.has_source_strings:
            raise OptionError(
                f"LogLinearHead: the classes of {type(layer.source).__name__} contain strings, which need source_size "
                "and a part of the prior with has_source_strings = True (it opens the dictionaries); add them"
            )
        if (source := self._nearest_source(layer)) is not None:
            return source
        kind = type(layer.source).__name__
        raise DataError(
            f"LogLinearHead: expected a source of rows for the classes of {kind}, found none; pass one in `classes`, "
            "or return it from `class_source` of a part whose `class_name` is the source's name"
        )

    def _check_replaced(self, view: ContextView) -> None:
        """Raise OptionError if a layer has a class for <unk>, although a source replaces <unk>."""
        if self.replaced is None or view.source.unk is not None:
            return
        if bool((view.pick(view.table.words) == self.unk).any()):
            raise OptionError(
                f"LogLinearHead: expected classes of {type(view.source).__name__} without <unk>, for which the open "
                "vocabulary has its own classes, found <unk> among their words; replace it by NO_WORD"
            )

    def _rows(self, background: BoundBackground, source_states: Tensor | None, shared: Rows | None = None) -> Rows:
        """Return the rows for a batch or a search. shared: rows of other sentences, to reuse the signatures' rows.

        Raises:
            DataError: source_states are needed but missing.
        """
        added = [module.columns(self.output.weight) for module in self.sources if module.num_columns]
        weight = torch.cat([self.output.weight, *added], dim=1) if added else self.output.weight
        of_source: dict[str, Any] = {}
        layers = [(layer, self._nearest_source(layer)) for layer in each_layer(background)]
        for module in self.sources:
            layer = next((layer for layer, source in layers if source is module), None)
            has_rows = module.kind is None or layer is not None
            if has_rows and module.needs_source_states and source_states is None:
                raise DataError(
                    f"LogLinearHead: {module.option or module.name} needs source_states, the encoder's states (B, L, "
                    "E), found None; pass them, and source_size to the constructor"
                )
            of_source[module.name] = module.rows(self, weight, layer, source_states) if has_rows else None
        if shared is not None and shared.width == weight.size(1):
            normalised = shared.normalised
        else:
            normalised = self.normaliser.compose_rows(self.output, weight, self.replaced)
        return Rows(normalised, of_source, weight.size(1), partial(self._rows, background, source_states))

    def _scored(self, hidden: Tensor, view: View, rows: Rows, **more: Any) -> Batch:
        """Return the batch of hidden states (B, T, H), with the scores of context classes. more: fields of Batch."""
        of_view = layers_of(view) if isinstance(view, ContextView) else []
        layers, shape = [(layer, self.source_of(layer.bound)) for layer in of_view], hidden.shape[:2]
        for layer, source in layers:
            if source.num_columns:
                hidden = source.widen(hidden, Place(layer, shape, rows, []))
        class_weights = view.class_mass
        if self.change is not None:
            class_weights = self.change.applied(class_weights, hidden.flatten(0, 1))
        pairs: list[RowPair] = []
        for layer, source in layers:
            if layer.table.width:
                place = Place(layer, shape, rows, pairs)
                if not layer.source.changes:
                    place = place.first_positions()
                self._check_replaced(place.view)
                pairs.append(source.rows_at(place))
        scores = [row_scores_at(hidden, *pair) for pair in pairs]
        static = self.output.rows.num_rows
        of_slots = []
        if scores:
            slot_weights = class_weights.select_classes(slice(static, None))
            of_slots = [broadcast_groups(slot_weights.shared, slot_weights.num_rows)]
        of_strings = None
        if self.open_words is not None:
            of_strings = self.open_words.scores(hidden, rows.of_source[self.open_words.name])
            scores.append(of_strings.logsumexp(-1, keepdim=True))
            replaced = torch.full((class_weights.num_rows,), self.open_words.replaces, device=hidden.device)
            of_slots.append(class_weights.for_classes(replaced).unsqueeze(1))
        slots = None
        if scores:
            together = scores[0] if len(scores) == 1 else torch.cat(scores, dim=2)
            mass = of_slots[0] if len(of_slots) == 1 else torch.cat(of_slots, dim=1)
            slots = SlotScores(together.flatten(0, 1), mass, self.replaced)
        return Batch(hidden, view, class_weights, rows, slots, of_strings, **more)

    # ---- inputs of the network --------------------------------------------------------------------------------------

    @property
    def embed_size(self) -> int:
        """D, the width of the embeddings of `embed`."""
        return self._reader().embedding_dim

    def embedding_rows(self) -> Tensor | None:
        """Return rows to share among calls of `embed`, or None if there is nothing to share."""
        return self._reader().kept_rows()

    def embed(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return the embeddings of tokens (…,): (…, D).

        Args:
            rows: of `embedding_rows`, to share them among calls.

        Raises:
            OptionError: the head has no `embedding`.
        """
        return self._reader()(tokens, rows)

    def _reader(self) -> InputEmbedding:
        """Return the module that reads tokens. Raises OptionError if there is none."""
        if self.embedding is None:
            raise OptionError("LogLinearHead.embed needs a head with `embedding`; pass one to the constructor")
        return self.embedding

    # ---- one call a batch -------------------------------------------------------------------------------------------

    def loss(self, *arguments: Any, **options: Any) -> Tensor:
        """Call `forward`, with hooks."""
        loss: Tensor = self(*arguments, **options)
        return loss

    def forward(
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
        """Return −log p(target | K) in nats, over all targets but padding.

        Args:
            hidden: (B, T, H). targets: (B, T), padded with `<pad>`.
            previous: the tokens before each position, (B, T). None: `self.previous(targets)`.
            source: (B, L), if the background depends on a source. source_states: as in `batch`.
            label_smoothing: the share ε of every target that is spread uniformly over the words that may come next
                (`smoothing_gain`). Values and gradients are those of the smoothed cross-entropy, up to a constant if
                the background has no learned weights.
            adaptor_penalty: the weight of ‖a(K)‖₂ (paper, §2.2).
            reduction: "mean" over the targets, "sum", or "none": (B, T), 0 at padding.

        Raises:
            OptionError: a number out of its range. DataError: shapes that do not fit, an empty batch, a token that is
                no word's id, or a target that the background forbids.
        """
        if reduction not in ("mean", "sum", "none"):
            raise OptionError(f"reduction: expected mean, sum or none, found {reduction!r}")
        given = {} if previous is None else {"previous": previous}
        previous = self.previous(targets) if previous is None else previous
        self._check(hidden, targets=targets, **given)
        if given and not torch.compiler.is_compiling():
            differ = bool((targets.ne(targets[:, :1]) & targets.ne(self.pad)).any())  # equal if one word repeats
            if differ and torch.equal(previous, targets):
                raise DataError(
                    "LogLinearHead.loss: expected `previous`, the token before each target, first `</s>`, found the "
                    "targets themselves; leave it out, or pass head.previous(targets)"
                )
        batch = self.batch(hidden, self.bind(previous, source), source_states)
        return self.loss_of(batch, targets, label_smoothing, adaptor_penalty, reduction)

    @property
    def has_learned_background(self) -> bool:
        """Whether any weight of the background is learned."""
        return self.change is not None or any(weight.requires_grad for weight in self.background.parameters())

    def log_probs(
        self,
        hidden: Tensor,
        *,
        previous: Tensor | None = None,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
    ) -> Tensor:
        """Return log p of all words at every position: hidden (B, T, H) -> (B, T, V + J₁).

        Args:
            previous: the tokens before each position, (B, T); optional if the background has no context.
            source: (B, L). source_states: as in `batch`.

        Raises:
            DataError: shapes that do not fit, a token that is no word's id, or no `previous` although the background
                needs it.
        """
        self._check(hidden, **({} if previous is None else {"previous": previous}))
        begins = torch.full(hidden.shape[:2], self.eos, device=hidden.device) if previous is None else previous
        condition = self.bind(begins, source)
        constant = all(background.is_context_independent for _, background in condition.backgrounds)
        if previous is None and (self.needs_context or not constant):
            raise DataError(
                "LogLinearHead.log_probs: the background needs `previous`, the tokens before each position (B, T), "
                "found None; pass it"
            )
        return self.word_log_probs(self.batch(hidden, condition, source_states))

    @property
    def needs_context(self) -> bool:
        """Whether the background or the classes depend on the previous tokens."""
        binds = [type(source).bind is not ClassSource.bind for source in self.sources]
        return not self.background.bind().is_context_independent or any(binds)

    def explain(
        self,
        hidden: Tensor,
        tokens: Tensor,
        *,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
        top: int = 5,
    ) -> list[Explanation]:
        """Explain the probability of each token of one sentence: log p = log b + aᵀφ − log Z, term by term, in nats.

        Args:
            hidden: (1, T, H), the network's states before each token. tokens: (T,), the last one `</s>`.
            source: (1, L). source_states: (1, L, E). top: the number of predictions, features and source words to list.

        Raises:
            DataError: as in `log_probs`.
        """
        self._check(hidden, tokens=tokens.unsqueeze(0))
        with torch.inference_mode():
            condition = self.bind(self.previous(tokens.unsqueeze(0)), source)
            return self.explain_batch(self.batch(hidden, condition, source_states), tokens, top)

    def explain_batch(self, batch: Batch, tokens: Tensor, top: int) -> list[Explanation]:
        """As `explain`, for a batch of one sentence."""
        from fairseq_llrnn.explain.explanation import explain

        arguments, class_weights = self.normaliser.explained(batch, tokens), batch.log_mass[0]
        if self.change is not None:
            before = batch.view.class_mass.dense()
            arguments["powered"] = (class_weights - before).masked_fill(before.isneginf(), 0.0)
            arguments["scores"] = arguments["scores"] + arguments["powered"]
            class_weights = before
        for source in self.sources:
            arguments |= source.explained(batch, arguments)
        of_batch = self.prior, self.output, batch.view, batch.hidden[0], tokens
        return list(explain(*of_batch, log_masses=class_weights, top=top, **arguments))

    def _check(self, hidden: Tensor, **of_positions: Tensor) -> None:
        """Raise DataError for hidden states or tokens of the wrong shape, or invalid token ids."""
        if not isinstance(hidden, Tensor) or hidden.dim() != 3 or hidden.size(2) != self.hidden_size:
            shape = tuple(hidden.shape) if isinstance(hidden, Tensor) else f"a {type(hidden).__name__}"
            raise DataError(
                f"LogLinearHead: expected hidden states (B, T, {self.hidden_size}), found {shape}; pass those of the "
                "last layer, batch first (the first value that torch's LSTM returns)"
            )
        for name, tokens in of_positions.items():
            if tokens.shape != hidden.shape[:2]:
                raise DataError(
                    f"LogLinearHead: expected {name} (B, T) = {tuple(hidden.shape[:2])}, like the hidden states, "
                    f"found {tuple(tokens.shape)}; pass one token for each position"
                )
        check_token_ids(self, **of_positions)


def row_scores_at(hidden: Tensor, rows: Tensor, bias: Tensor) -> Tensor:
    """Return the scores of context classes: (B, T, H') -> (B, T, J), at least float32.

    Args:
        rows, bias: (B, T, J, H') and (B, T, J), or (B, 1, …) if all positions of a sentence have the same.
    """
    if rows.size(1) == 1:
        product = hidden @ rows.squeeze(1).to(hidden.dtype).transpose(1, 2)
    else:
        product = (hidden.unsqueeze(2) * rows.to(hidden.dtype)).sum(3)
    return product.to(bias.dtype) + bias
