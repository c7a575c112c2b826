"""What every decoder of ours ends in: a log-linear output over signatures, and a background.

Sizes: B batch, T time, L source length, V words, S signatures, H hidden width. Element 0 of the decoder's output holds
aᵀφ(σ), (B, T, S), which the host may divide by a temperature; log b rides in the second element and is never tempered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from fairseq_llrnn.core.backgrounds.contract import Background
from fairseq_llrnn.core.log_linear import LogLinearOutput
from fairseq_llrnn.core.prior import Prior
from fairseq_llrnn.errors import DataError, PriorError

IncrementalState = dict[str, dict[str, Any]]
EncoderOut = dict[str, list[Tensor]]  # as the host's; "src_tokens" holds the source, (B, L)


class LogLinearDecoder(FairseqIncrementalDecoder):
    """Hidden states, which a subclass supplies (`hidden`), -> log-linear output given the source's background."""

    prior_fingerprint: Tensor

    def __init__(
        self, dictionary: Dictionary, prior: Prior, output: LogLinearOutput, bf16_products: bool = False
    ) -> None:
        """bf16_products: train with bfloat16 products; the output layer takes over the dtype of the hidden states."""
        super().__init__(dictionary)
        self.output = output
        self.background = prior.background()
        self.bf16_products = bf16_products
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
            previous: the tokens before each position, (B, T).

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
            features_only: return the hidden states (B, T, H) instead of the class scores (B, T, S).

        Returns:
            hidden states or scores, and {"attn": …, "log_mass": …} with log_mass broadcasting to (B, T, S).
        """
        hidden, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        if features_only:
            return hidden, extra
        return self.output.class_scores(hidden, extra["composed"]), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: IncrementalState | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Hidden states (B, T, H), and the background along the positions. (B, 1, …) with `incremental_state`."""
        with torch.autocast(prev_output_tokens.device.type, torch.bfloat16, enabled=self._reduced):
            hidden, attention = self.hidden(prev_output_tokens, encoder_out, incremental_state)
        background = self._given(encoder_out, incremental_state)
        extra: dict[str, Any] = {
            "attn": None if attention is None else [attention],
            "background": background,
            # here, inside `forward`, so that torch's DistributedDataParallel sees the output's parameters used
            "composed": self._kept(incremental_state, "output rows", self.output.composed),
        }
        if incremental_state is None:
            extra |= {"previous": prev_output_tokens, "log_mass": background.log_mass_along(prev_output_tokens)}
        else:
            state = self._advance(background, prev_output_tokens, incremental_state)
            extra |= {"state": state, "log_mass": background.log_mass(state).unsqueeze(1)}
        return hidden.to(torch.bfloat16) if self._reduced else hidden, extra

    @property
    def _reduced(self) -> bool:
        return self.bf16_products and self.training

    def _given(self, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None) -> Background:
        """b(C; ·) of the batch's sources. A search keeps it as it is: the states, which it reorders, know their row."""
        if encoder_out is None:
            return self.background
        source = encoder_out["src_tokens"][0]
        given: Background = self._kept(incremental_state, "given", lambda: self.background.given(source))
        return given

    def _kept(self, incremental_state: IncrementalState | None, name: str, make: Callable[[], Any]) -> Any:
        """What `make` returns: made at the first step of a search and used at all others, never reordered."""
        if incremental_state is None:
            return make()
        kept = self.get_incremental_state(incremental_state, name)
        if kept is None:
            kept = {"value": make()}
            self.set_incremental_state(incremental_state, name, kept)
        return kept["value"]

    def _advance(self, background: Background, tokens: Tensor, incremental_state: IncrementalState) -> Tensor:
        """The background's state after the prefix `tokens` (B, t), whose first symbol only starts the sentence."""
        before = self.get_incremental_state(incremental_state, "background")
        if before is None:
            state = background.start(tokens.size(0))
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
        log_mass = extra["log_mass"]
        background, previous = extra["background"], extra["previous"]
        share = background.log_share_along(previous, targets)
        log_weights = None
        if self.output.formula == "plain":
            weights = log_mass[..., self.output.class_of] + background.log_shares_along(previous)
            log_weights = _one_row_or_all(weights, targets)
        flat = self.output.target_log_prob(
            hidden.flatten(0, 1),
            targets.flatten(),
            _one_row_or_all(log_mass, targets),
            share.flatten(),
            log_weights,
            extra["composed"],
        )
        return flat.view(targets.shape)

    def smoothing_gain(self, hidden: Tensor, extra: dict[str, Any], targets: Tensor) -> Tensor:
        """What label smoothing adds to the log-probabilities, in units of its ε (LogLinearOutput): (B, T)."""
        return self.output.smoothing_gain(hidden, targets, extra["log_mass"], extra["composed"])

    def refuse_impossible(self, log_prob: Tensor, targets: Tensor, ids: Tensor) -> None:
        """A target without background mass would make the loss infinite: say which word, sentence and position.

        Args:
            log_prob: of the targets, (B, T). targets: (B, T). ids: (B,) the samples' numbers, from zero (a sample is a
                sentence, or a block of --tokens-per-sample words); another length where the host has cut the batch
                up, so that nobody knows the place.

        Raises:
            DataError: log_prob is −inf for a target that is not padding.
        """
        impossible = torch.isneginf(log_prob) & targets.ne(self.dictionary.pad())
        if not bool(impossible.any()):
            return
        row, position = impossible.nonzero()[0].tolist()
        word = self.dictionary[int(targets[row, position])]
        place = f"at position {position + 1} of sample {int(ids[row]) + 1}, " if len(ids) == len(targets) else ""
        near = targets[row, max(0, position - 5) : position + 4]
        around = self.dictionary.string(near[near.ne(self.dictionary.pad())])
        raise DataError(
            f"the background gives word {word!r} no mass, but it is the target {place}in {around!r} "
            f"({int(impossible.sum())} such targets in this batch); build the prior with a background that covers it, "
            "e.g. --background unigram --smoothing absolute"
        )

    def get_normalized_probs(
        self, net_output: tuple[Tensor, dict[str, Any]], log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor:
        """Probabilities of all V words, for the host's scorers and searches: (B, T, S) -> (B, T, V).

        Only a scorer hands over its sample; it would leave impossible targets out of its perplexity.
        """
        scores, extra = net_output
        if "state" in extra:
            shares = extra["background"].log_shares(extra["state"]).unsqueeze(1)
        else:
            shares = extra["background"].log_shares_along(extra["previous"])
        result = self.output.log_probs(scores, extra["log_mass"], shares)
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
        return state_dict


def _one_row_or_all(along: Tensor, targets: Tensor) -> Tensor:
    """(1, 1, ·) -> (1, ·); whatever else broadcasts to (B, T, ·) -> (B·T, ·)."""
    return along.flatten(0, 1) if along.shape[:2] == (1, 1) else along.expand(*targets.shape, -1).flatten(0, 1)


def _hex(fingerprint: Tensor) -> str:
    return "".join(f"{byte:02x}" for byte in fingerprint.flatten().float().round().long().tolist())
