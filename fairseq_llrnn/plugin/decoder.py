"""The recurrent decoder whose output layer is log-linear.

Sizes: B batch, T time, V words, S signatures, H hidden width. Element 0 of the decoder's output holds aᵀφ(σ),
(B, T, S), which the host may divide by a temperature; log b rides in the second element and is never tempered.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from fairseq_llrnn.core.composition import FeatureEmbedding
from fairseq_llrnn.core.log_linear import LogLinearOutput
from fairseq_llrnn.core.network import RecurrentNetwork
from fairseq_llrnn.core.prior import Prior
from fairseq_llrnn.errors import DataError, PriorError

IncrementalState = dict[str, dict[str, Tensor | None]]


class LogLinearDecoder(FairseqIncrementalDecoder):
    """ψ-embedding -> recurrent network -> log-linear output over signatures."""

    prior_fingerprint: Tensor

    def __init__(
        self,
        dictionary: Dictionary,
        prior: Prior,
        network: RecurrentNetwork,
        embedding: FeatureEmbedding,
        output: LogLinearOutput,
        context_window: int,
        bf16_products: bool,
    ) -> None:
        super().__init__(dictionary)
        self.network = network
        self.embedding = embedding
        self.output = output
        self.background = prior.background()
        self.context_window = context_window
        self.bf16_products = bf16_products
        # the weights mean nothing beside another prior: a checkpoint remembers which it was trained with (as floating
        # point, so that the host's averages of checkpoints and of updates are the same fingerprint again)
        fingerprint = torch.tensor(list(bytes.fromhex(prior.fingerprint)), dtype=torch.float32)
        self.register_buffer("prior_fingerprint", fingerprint)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: None = None,
        incremental_state: IncrementalState | None = None,
        src_lengths: Tensor | None = None,
        features_only: bool = False,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Hidden states or class scores for every position (or the last one, where `incremental_state` is given).

        Args:
            prev_output_tokens: (B, T). src_lengths: what the host passes along; unused, since padding is on the right.
            features_only: return the hidden states (B, T, H) instead of the class scores (B, T, S).

        Returns:
            hidden states or scores, and {"attn": None, "log_mass": …} with log_mass broadcasting to (B, T, S).
        """
        hidden, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        if features_only:
            return hidden, extra
        if incremental_state is None:
            return self.output.class_scores(hidden), extra
        cache = self._cache(incremental_state)
        return self.output.class_scores(hidden, (cache["output_rows"], cache["output_bias"])), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: None = None,
        incremental_state: IncrementalState | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Hidden states (B, T, H), and the background along the positions. (B, 1, …) with `incremental_state`."""
        if incremental_state is None:
            hidden = self._hidden_of_sequence(prev_output_tokens)
            log_mass = self.background.log_mass_along(prev_output_tokens)
            return hidden, {"attn": None, "previous": prev_output_tokens, "log_mass": log_mass}
        state = self._advance(prev_output_tokens, incremental_state)
        table = self._cache(incremental_state)["input_rows"]
        if self.context_window:
            hidden = self._hidden_of_windows(prev_output_tokens[:, -self.context_window :].unsqueeze(1), table)
        else:
            before = self.get_incremental_state(incremental_state, "network")
            unread = prev_output_tokens if before is None else prev_output_tokens[:, -1:]
            hidden, after = self._run(self.embedding(unread, table), None if before is None else before["state"])
            hidden = hidden[:, -1:]
            self.set_incremental_state(incremental_state, "network", {"state": after})
        return hidden, {"attn": None, "state": state, "log_mass": self.background.log_mass(state).unsqueeze(1)}

    def _hidden_of_sequence(self, tokens: Tensor) -> Tensor:
        table = self.embedding.table()
        if not self.context_window:
            hidden, _ = self._run(self.embedding(tokens, table))
            return hidden
        width = self.context_window
        padded = torch.nn.functional.pad(tokens, (width - 1, 0), value=self.dictionary.pad())
        return self._hidden_of_windows(padded.unfold(1, width, 1), table)

    def _hidden_of_windows(self, windows: Tensor, table: Tensor) -> Tensor:
        """Every position sees its last W words: (B, T, ≤ W) tokens -> (B, T, H). Missing words are zero vectors."""
        batch, time, width = windows.shape
        flat = windows.reshape(batch * time, width)
        flat = torch.nn.functional.pad(flat, (self.context_window - width, 0), value=self.dictionary.pad())
        embedded = self.embedding(flat, table) * flat.ne(self.dictionary.pad()).unsqueeze(-1)
        hidden, _ = self._run(embedded)
        return hidden[:, -1].view(batch, time, -1)

    def _run(self, embedded: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The network; in training, if asked, with bfloat16 products. The output layer takes over their dtype."""
        enabled = self.bf16_products and self.training
        with torch.autocast(embedded.device.type, torch.bfloat16, enabled=enabled):
            hidden, after = self.network(embedded, state)
        return hidden.to(torch.bfloat16) if enabled else hidden, after

    def _cache(self, incremental_state: IncrementalState) -> dict[str, Tensor]:
        """The composed tables, made at the first step of a search and used at all others."""
        cache = self.get_incremental_state(incremental_state, "composed")
        if cache is None:
            rows, bias = self.output.composed()
            cache = {"output_rows": rows, "output_bias": bias, "input_rows": self.embedding.table()}
            self.set_incremental_state(incremental_state, "composed", cache)
        return cache

    def _advance(self, tokens: Tensor, incremental_state: IncrementalState) -> Tensor:
        """The background's state after the prefix `tokens` (B, t), whose first symbol only starts the sentence."""
        before = self.get_incremental_state(incremental_state, "background")
        if before is None:
            state = self.background.start(tokens.size(0))
            for t in range(1, tokens.size(1)):
                state = self.background.advance(state, tokens[:, t])
        else:
            state = self.background.advance(before["state"], tokens[:, -1])
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
        share = self.background.log_share_along(extra["previous"], targets)
        log_weights = None
        if self.output.formula == "plain":
            weights = log_mass[..., self.output.class_of] + self.background.log_shares_along(extra["previous"])
            log_weights = _one_row_or_all(weights, targets)
        flat = self.output.target_log_prob(
            hidden.flatten(0, 1), targets.flatten(), _one_row_or_all(log_mass, targets), share.flatten(), log_weights
        )
        return flat.view(targets.shape)

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
            shares = self.background.log_shares(extra["state"]).unsqueeze(1)
        else:
            shares = self.background.log_shares_along(extra["previous"])
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
