"""What every decoder of ours ends in: a log-linear output over signatures, and a background.

Sizes: B batch, T time, L source length, V words, S signatures, J slots, H hidden width, E encoder width. Element 0 of
the decoder's output holds aᵀφ(σ), (B, T, S), which the host may divide by a temperature; log b rides in the second
element and is never tempered. Where the sources offer evidence there are J classes more, and ids beyond V, which the
background knows (core/backgrounds/evidence.py): the output is (B, T, S + J); for all words there are V + J columns.
With an open vocabulary, <unk> stands for all strings outside the dictionary (core/open_vocabulary/mixture.py), and
targets may be ids of such strings, beyond V.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.core.backgrounds.along import Along
from fairseq_llrnn.core.backgrounds.contract import NEGATIVE_INFINITY, Background
from fairseq_llrnn.core.backgrounds.corrections import Corrections
from fairseq_llrnn.core.composition import FeatureEmbedding
from fairseq_llrnn.core.evidence.slots import SlotRows
from fairseq_llrnn.core.experts.features import ExpertFeatures
from fairseq_llrnn.core.log_linear import LogLinearOutput, SlotScores
from fairseq_llrnn.core.open_vocabulary.mixture import OpenMixture, class_mass, log_spelling
from fairseq_llrnn.core.prior import Prior
from fairseq_llrnn.core.sampled_output import SampledOutput
from fairseq_llrnn.core.sampling import ClassSampler
from fairseq_llrnn.errors import OptionError, PriorError
from fairseq_llrnn.plugin.experts import check_experts, evidence_of, exception_scores, listen, without_experts
from fairseq_llrnn.plugin.impossible import how_to_mend, refuse_impossible

IncrementalState = dict[str, dict[str, Any]]
EncoderOut = dict[str, list[Tensor]]  # as the host's; "src_tokens" holds the source, (B, L)


@dataclass(frozen=True)
class Given:
    """The background of a batch of sources."""

    background: Background
    sentence: Tensor | None  # (N,) which sentence each hypothesis of a search is of; None: row i is sentence i


def known_words(tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """The tokens with <unk> for strings outside the dictionary: all that a table with a row per word can read."""
    return tokens.masked_fill(tokens >= len(dictionary), dictionary.unk())


class LogLinearDecoder(FairseqIncrementalDecoder):
    """Hidden states, which a subclass supplies (`hidden`), -> log-linear output given the source's background."""

    prior_fingerprint: Tensor
    log_sizes: Tensor  # (S,)

    def __init__(
        self,
        dictionary: Dictionary,
        prior: Prior,
        output: LogLinearOutput,
        bf16_products: bool = False,
        encoder_size: int | None = None,
    ) -> None:
        """
        Args:
            bf16_products: train with bfloat16 products; the output layer takes over the dtype of the hidden states.
            encoder_size: E, the width of the states in encoder_out["encoder_out"]; None for a language model.
        """
        super().__init__(dictionary)
        self.output = output
        self.background = prior.background(has_source=encoder_size is not None)
        self.slot_rows = None
        if prior.evidence is not None and encoder_size is not None:
            if output.formula == "plain":
                raise OptionError("--output-formula plain: not supported with a prior that has evidence; use signature")
            self.slot_rows = SlotRows(encoder_size, output.weight.size(1))
        self.opened, self.open_table = None, prior.open_table
        if prior.open_vocabulary is not None:
            if output.formula == "plain":
                raise OptionError(
                    "--output-formula plain: not supported with a prior that has an open vocabulary; use signature"
                )
            self.opened = OpenMixture(prior.open_vocabulary, int(output.class_of[dictionary.unk()]))
        self.experts: ExpertFeatures | None = None  # set by plugin/experts.py
        self.sampler: ClassSampler | None = None  # set by a criterion that trains with samples of the classes
        self.mend = how_to_mend(prior)
        self.bf16_products = bf16_products
        # how many words of each class labels are smoothed towards
        sizes = torch.bincount(self.background.class_of, minlength=self.background.num_classes).float()
        sizes[self.background.class_of[[dictionary.eos(), dictionary.unk()]]] = 0.0
        self.register_buffer("log_sizes", sizes.log(), persistent=False)
        # the weights mean nothing beside another prior: a checkpoint remembers which it was trained with (as floating
        # point, so that the host's averages of checkpoints and of updates are the same fingerprint again)
        fingerprint = torch.tensor(list(bytes.fromhex(prior.fingerprint)), dtype=torch.float32)
        self.register_buffer("prior_fingerprint", fingerprint)

    # ---- what a subclass supplies -------------------------------------------------------------------------------

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> tuple[Tensor, Tensor | None]:
        """Hidden states of every position, or of the last one where `incremental_state` is given.

        Args:
            previous: the tokens before each position, (B, T), all of them below V; with `reads_open` below V + O.

        Returns:
            (B, T, H) or (B, 1, H), and the attention on the source, (B, T, L) or (B, 1, L), if there is any.
        """
        raise NotImplementedError

    # ---- the host's interface -----------------------------------------------------------------------------------

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: IncrementalState | None = None,
        src_lengths: Tensor | None = None,
        features_only: bool = False,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Hidden states or class scores for every position (or the last one, where `incremental_state` is given).

        Args:
            prev_output_tokens: (B, T). src_lengths: what the host passes along; unused, since padding is on the right.
            features_only: return the hidden states (B, T, H) instead of the class scores (B, T, S + J).

        Returns:
            hidden states or scores, and the rest of what the output needs: {"attn": …, "background": …, "composed": …,
            "slots": … where there are any}, for a whole batch "along" (Along), in a search "state" and "masses".
        """
        hidden, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        if features_only:
            return hidden, extra
        scores = self.output.class_scores(hidden, extra["composed"])
        if self.opened is not None:
            scores = self.opened.with_unk(scores, self.opened.scores(hidden, extra["open"]))
        if _has_slots(extra):
            scores = torch.cat([scores, self._slot_scores(hidden, extra)], dim=2)
        return scores, extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: IncrementalState | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Hidden states (B, T, H), and the background along the positions. (B, 1, …) with `incremental_state`."""
        strings = prev_output_tokens
        if self.opened is not None and self.slot_rows is None:  # a background with slots knows such ids itself
            prev_output_tokens = known_words(prev_output_tokens, self.dictionary)
        given = self._given(encoder_out, self._as_in_text(strings, prev_output_tokens), incremental_state)
        background, state = given.background, None
        if incremental_state is not None:
            state = self._advance(given, prev_output_tokens, incremental_state)
            background = self._limited(background, prev_output_tokens, incremental_state)
        read = background.readable(prev_output_tokens, state)
        if self.reads_open and self.slot_rows is None:
            read = self.read_as(strings, read)
        with torch.autocast(prev_output_tokens.device.type, torch.bfloat16, enabled=self._reduced):
            hidden, attention = self.hidden(read, encoder_out, incremental_state)
        extra: dict[str, Any] = {"attn": None if attention is None else [attention], "background": background}
        # here, inside `forward`, so that torch's DistributedDataParallel sees the output's parameters used
        if self.sampler is not None and self.training:
            extra["sampled"] = SampledOutput(self.output, self.sampler.draw())
        else:
            extra["composed"] = self._kept(incremental_state, "output rows", self._composed)
        if self.opened is not None:
            extra["open"] = self._kept(incremental_state, "open rows", self._open_rows)
        if evidence_of(background) is not None:
            extra["slots"] = self._kept(incremental_state, "slot rows", lambda: self._rows_of_slots(given, encoder_out))
        if self.experts is not None:
            keep = functools.partial(self._kept, incremental_state)
            hidden = listen(self.experts, hidden, prev_output_tokens, state, extra, self.opened, keep)
        if state is None:
            extra["along"] = Along(background, prev_output_tokens)
        else:
            extra |= {"state": state, "masses": background.corrections(state) or background.log_mass(state)}
        return hidden.to(torch.bfloat16) if self._reduced else hidden, extra

    @property
    def reads_open(self) -> bool:
        """Whether the network reads unknown words by their open class: where its words are embedded by features."""
        return self.opened is not None and isinstance(getattr(self, "embedding", None), FeatureEmbedding)

    def read_as(self, strings: Tensor, known: Tensor) -> Tensor:
        """The tokens `known` with V + o in the place of strings beyond the dictionary, o the class they look like."""
        assert self.open_table is not None
        outside = strings >= len(self.dictionary)
        if not bool(outside.any()):
            return known
        classes = torch.from_numpy(self.open_table.read_as(strings[outside].cpu().numpy())).to(known)
        return known.masked_scatter(outside, len(self.dictionary) + classes)

    def _as_in_text(self, strings: Tensor, known: Tensor) -> Tensor:
        """In training, the tokens `known` with words in the place of their twins: by these a text is held out."""
        if self.open_table is None or not self.training:
            return known
        outside = strings >= len(self.dictionary)
        words = torch.from_numpy(self.open_table.words_of(strings[outside].cpu().numpy())).to(known)
        return known.masked_scatter(outside, torch.where(words < 0, self.dictionary.unk(), words))

    def _composed(self) -> tuple[Tensor, Tensor]:
        composed = self.output.composed()
        return composed if self.opened is None else self.opened.without_unk(composed)

    def _open_rows(self) -> tuple[Tensor, Tensor]:
        assert self.opened is not None
        return self.opened.composed(self.output.weight, self.output.bias)

    @property
    def _reduced(self) -> bool:
        return self.bf16_products and self.training

    def _given(
        self, encoder_out: EncoderOut | None, previous: Tensor, incremental_state: IncrementalState | None
    ) -> Given:
        """b(C; ·) of the batch's sources. A search keeps it: its states, which it reorders, know the sentence."""
        if encoder_out is None:
            if incremental_state is None:
                whole = self.background.held_out(previous) if self.training else self.background
                return Given(self._with_experts(whole, None), None)
            if self.experts is None:
                return Given(self.background, None)
            bound = functools.partial(self._with_experts, self.background)
            return Given(self._kept(incremental_state, "contexts", bound), None)
        source = encoder_out["src_tokens"][0]
        if incremental_state is None:
            if not self.training:
                return Given(self._with_experts(self.background.given(source), source), None)
            # all words of the target are among those before its positions
            held_out = self.background.given(source, previous).held_out(previous)
            return Given(self._with_experts(held_out, source), None)

        def see_once() -> Given:  # a beam search repeats every sentence for its hypotheses
            sentences, row = torch.unique_consecutive(source, return_inverse=True, dim=0)
            return Given(self._with_experts(self.background.given(sentences), sentences), row)

        given: Given = self._kept(incremental_state, "given", see_once)
        return given

    def _with_experts(self, background: Background, sources: Tensor | None = None) -> Background:
        return background if self.experts is None else self.experts.bind(background, sources)

    def search_state(self, incremental_state: IncrementalState) -> tuple[Background, Tensor]:
        """The background of a search, without experts, and its hypotheses' states in it, after the last step."""
        given = self.get_incremental_state(incremental_state, "given")
        state = self.get_incremental_state(incremental_state, "background")
        assert given is not None and state is not None
        return without_experts(given["value"].background, state["state"])

    def limit_length(self, incremental_state: IncrementalState, most: int) -> None:
        """Tell a search that its hypotheses may have at most so many tokens, `</s>` included, in all."""
        self.set_incremental_state(incremental_state, "most", {"value": most})

    def _limited(self, background: Background, tokens: Tensor, incremental_state: IncrementalState) -> Background:
        """The background for the step after `tokens` (B, t) of a search, whose first symbol starts the sentence."""
        most = self.get_incremental_state(incremental_state, "most")
        return background if most is None else background.within(most["value"] - (tokens.size(1) - 1))

    def _rows_of_slots(self, given: Given, encoder_out: EncoderOut | None) -> tuple[Tensor, Tensor]:
        """Rows (B, J, H) and biases (B, J) of the slots of every sentence, like those of LogLinearOutput.composed."""
        evidence = evidence_of(given.background)
        assert encoder_out is not None and self.slot_rows is not None and evidence is not None
        states = encoder_out["encoder_out"][0].transpose(0, 1)  # shape: (N, L, E)
        if given.sentence is not None:
            states = states[given.sentence.diff(prepend=given.sentence[:1] - 1) > 0]  # the first hypothesis of each
        rows: tuple[Tensor, Tensor] = self.slot_rows(evidence.slots, self.output.weight, self.output.bias, states)
        return rows

    def _slot_scores(self, hidden: Tensor, extra: dict[str, Any]) -> Tensor:
        """Scores of the slots, and of the experts' exceptions behind them: (B, T, H) -> (B, T, J), at least float32."""
        found = []
        if extra.get("slots") is not None:
            rows, bias = extra["slots"]
            if "state" in extra:  # a search, whose hypotheses know their sentence
                sentence = without_experts(extra["background"], extra["state"])[1][:, 0]
                rows, bias = rows[sentence], bias[sentence]
            found.append((hidden @ rows.to(hidden.dtype).transpose(1, 2)).to(bias.dtype) + bias.unsqueeze(1))
        if extra.get("exceptions") is not None:
            found.append(exception_scores(hidden, extra["exceptions"]))
        return torch.cat(found, dim=2) if len(found) > 1 else found[0]

    def _kept(self, incremental_state: IncrementalState | None, name: str, make: Callable[[], Any]) -> Any:
        """What `make` returns: made at the first step of a search and used at all others, never reordered."""
        if incremental_state is None:
            return make()
        kept = self.get_incremental_state(incremental_state, name)
        if kept is None:
            kept = {"value": make()}
            self.set_incremental_state(incremental_state, name, kept)
        return kept["value"]

    def _advance(self, given: Given, tokens: Tensor, incremental_state: IncrementalState) -> Tensor:
        """The background's state after the prefix `tokens` (B, t), whose first symbol only starts the sentence."""
        background, before = given.background, self.get_incremental_state(incremental_state, "background")
        if before is None:
            many = tokens.size(0) if given.sentence is None else int(given.sentence[-1]) + 1
            state = background.start(many)
            state = state if given.sentence is None else state[given.sentence]
            for t in range(1, tokens.size(1)):
                state = background.advance(state, tokens[:, t])
        else:
            state = background.advance(before["state"], tokens[:, -1])
        self.set_incremental_state(incremental_state, "background", {"state": state})
        return state

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        for key in ("network", "background"):
            saved = self.get_incremental_state(incremental_state, key)
            if saved is not None:
                self.set_incremental_state(incremental_state, key, {"state": saved["state"].index_select(0, new_order)})

    def target_log_prob(self, hidden: Tensor, extra: dict[str, Any], targets: Tensor) -> Tensor:
        """log p(target | K) in nats: hidden (B, T, H) and `extra` of extract_features, targets (B, T) -> (B, T).

        −inf for a target that the background forbids, padding included: the caller masks it.
        """
        along: Along = extra["along"]
        masses, static, slots = along.masses, self.background.num_classes, None
        words = targets if extra.get("slots") is not None else known_words(targets, self.dictionary)
        classes = along.background.classes_along(words).flatten()
        if _has_slots(extra):
            slots = SlotScores(
                self._slot_scores(hidden, extra).flatten(0, 1),
                along.log_mass[..., static:].expand(*targets.shape, -1).flatten(0, 1),
                classes,
            )
        opened = None
        if self.opened is not None:
            opened = self.opened.scores(hidden, extra["open"]).flatten(0, 1)
            mass = class_mass(masses, self.opened.unk_class)
            mass = mass if isinstance(masses, Corrections) else mass.expand(targets.shape).flatten()
            slots = self.opened.as_slot(opened, mass, classes, slots, static)
        each, share = (hidden.flatten(0, 1), words.flatten()), along.log_share(words).flatten()
        rows = masses if isinstance(masses, Corrections) else _rows(masses[..., :static], targets)
        if "sampled" in extra:
            flat = extra["sampled"].target_log_prob(*each, rows, share, slots)
        else:
            log_weights = None
            if self.output.formula == "plain":
                log_weights = along.log_weights().expand(*targets.shape, -1).flatten(0, 1)
            flat = self.output.target_log_prob(*each, rows, share, log_weights, extra["composed"], slots)
        if opened is not None:
            flat = self._spelt(flat, opened, targets.flatten(), classes)
        return flat.view(targets.shape)

    def adaptor_norm(self, hidden: Tensor, p: float = 2.0) -> Tensor:
        """‖a(K)‖ₚ at every position, hidden (B, T, H) of extract_features: (B, T). Experts' weights are part of a."""
        flat, width = hidden.flatten(0, 1), self.output.weight.size(1)
        norm = self.output.adaptor_norm(flat[:, :width], p)
        if self.experts is not None:
            own = torch.linalg.vector_norm(flat[:, -len(self.experts.panel.experts) :].to(norm.dtype), p, -1)
            norm = torch.linalg.vector_norm(torch.stack([norm, own], dim=1), p, -1)
        return norm.view(hidden.shape[:2])

    def _spelt(self, log_prob: Tensor, opened: Tensor, targets: Tensor, classes: Tensor) -> Tensor:
        """log p of the targets (N,), where that of <unk> stands for strings outside the dictionary that are no slots.

        Args:
            opened: scores of the open classes, (N, O). classes: of the targets, (N,).
        """
        assert self.opened is not None and self.open_table is not None
        places = ((targets >= len(self.dictionary)) & (classes == self.opened.unk_class)).nonzero().squeeze(1)
        if len(places) == 0:
            return log_prob
        log_strings = torch.from_numpy(self.open_table.log_probs(targets[places].cpu().numpy())).to(opened.device)
        return log_prob.index_add(0, places, log_spelling(opened[places], log_strings).to(log_prob.dtype))

    def smoothing_gain(self, hidden: Tensor, extra: dict[str, Any], targets: Tensor) -> Tensor:
        """What label smoothing adds to the log-probabilities, in units of its ε (LogLinearOutput): (B, T).

        Towards all words alike (a slot is one, too) that may come next, but not </s>. Smoothed as the background has
        them, other words of the same source would get too much, and </s> as well: sentences would end too early.
        """
        log_mass = extra["along"].log_mass
        sizes = functional.pad(self.log_sizes, (0, log_mass.size(-1) - len(self.log_sizes)))
        log_q = torch.where(log_mass.isneginf(), NEGATIVE_INFINITY, sizes)
        slots = None
        if _has_slots(extra):
            classes = extra["background"].classes_along(targets)
            slots = SlotScores(self._slot_scores(hidden, extra), log_q, classes)
        if self.opened is not None:
            targets = known_words(targets, self.dictionary)
            classes = self.output.class_of[targets] if slots is None else slots.targets
            column = self.opened.scores(hidden, extra["open"]).logsumexp(-1, keepdim=True)
            if slots is not None:
                column = torch.cat([slots.scores, column], dim=-1)
            last = self.background.num_classes + column.size(-1) - 1
            log_q = functional.pad(log_q, (0, 1), value=NEGATIVE_INFINITY)  # nothing is smoothed towards <unk>
            slots = SlotScores(column, log_q, classes.masked_fill(classes == self.opened.unk_class, last))
        return self.output.smoothing_gain(hidden, targets, log_q, extra["composed"], slots)

    def refuse_impossible(self, log_prob: Tensor, targets: Tensor, ids: Tensor) -> None:
        """A target without background mass would make the loss infinite: say which word, sentence and position.

        Args:
            log_prob: of the targets, (B, T). targets: (B, T). ids: (B,) the samples' numbers, from zero (a sample is a
                sentence, or a block of --tokens-per-sample words); another length where the host has cut the batch
                up, so that nobody knows the place.

        Raises:
            DataError: log_prob is −inf for a target that is not padding.
        """
        refuse_impossible(log_prob, targets, ids, self.dictionary, self.mend)

    def get_normalized_probs(
        self, net_output: tuple[Tensor, dict[str, Any]], log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor:
        """Probabilities of all words and slots, for the host's scorers and searches: (B, T, S + J) -> (B, T, V + J).

        Only a scorer hands over its sample; it would leave impossible targets out of its perplexity.
        """
        scores, extra = net_output
        background = extra["background"]
        if "state" in extra:
            classes = self.output.class_log_probs(scores[:, -1], extra["masses"])
            result = background.word_log_probs(classes, extra["state"]).unsqueeze(1)
        else:
            along: Along = extra["along"]
            if scores.shape[:2] != along.previous.shape and along.log_mass.shape[:2].numel() > 1:
                raise OptionError(
                    "--softmax-batch: not supported with this prior, whose background is another one at every "
                    "position; leave it out, or say --max-tokens with a smaller number"
                )
            classes = self.output.class_log_probs(scores, along.log_mass)
            result = background.word_log_probs_along(classes, along.previous)
        if sample is not None and sample.get("target") is not None:
            target = sample["target"]
            self.refuse_impossible(result.gather(2, target.unsqueeze(2)).squeeze(2), target, sample["id"])
        return result if log_probs else result.exp()

    def max_positions(self) -> int:
        return 100_000  # recurrent: no limit of its own

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Refuse weights that were trained beside another prior."""
        saved = state_dict.get(f"{name}.prior_fingerprint")
        if saved is not None and _hex(saved) != _hex(self.prior_fingerprint):
            raise PriorError(
                "the checkpoint was trained with another prior than the one given (fingerprints "
                f"{_hex(saved)[:12]}… and {_hex(self.prior_fingerprint)[:12]}…); "
                "give the prior of its training with --prior"
            )
        check_experts(self.experts, state_dict.get(f"{name}.experts.weight"))
        return state_dict


def _has_slots(extra: dict[str, Any]) -> bool:
    """Whether there are classes beyond the prior's: slots of evidence, or experts' exceptions."""
    return extra.get("slots") is not None or extra.get("exceptions") is not None


def _rows(along: Tensor, targets: Tensor) -> Tensor:
    """(1, 1, ·) -> (1, ·) and (B, 1, ·) -> (B, ·), a row for each sentence; what else broadcasts -> (B·T, ·)."""
    return along.flatten(0, 1) if along.size(1) == 1 else along.expand(*targets.shape, -1).flatten(0, 1)


def _hex(fingerprint: Tensor) -> str:
    return "".join(f"{byte:02x}" for byte in fingerprint.flatten().float().round().long().tolist())
