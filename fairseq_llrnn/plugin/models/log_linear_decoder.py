"""What every decoder of ours ends in: a log-linear output over signatures, and a background.

Sizes: B batch, T time, L source length, V words, S signatures, J slots, H hidden width, E encoder width. Element 0 of
the decoder's output holds aᵀφ(σ), (B, T, S), which the host may divide by a temperature; log b rides in the second
element and is never tempered. Where the sources offer evidence there are J classes more, and ids beyond V, which the
background knows (evidence/background.py): the output is (B, T, S + J); for all words there are V + J columns.
With an open vocabulary, <unk> stands for all strings outside the dictionary (open_vocabulary/mixture.py), and
targets may be ids of such strings, beyond V.

    conditioning.py, search_memory.py    the background of a batch or a search; what a search remembers
    class_rows.py, open_strings.py       rows and scores of all classes; strings outside the dictionary
    target_terms.py, all_words.py        what a criterion asks; what the host's scorers and searches ask
    fingerprint.py                       what a checkpoint remembers of its prior
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.positions import Along
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.slots import SlotRows
from fairseq_llrnn.experts.features import ExpertFeatures
from fairseq_llrnn.experts.mixture import evidence_of
from fairseq_llrnn.open_vocabulary.mixture import OpenMixture
from fairseq_llrnn.output.class_sampling import ClassSampler
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.output.learned_temperature import LearnedTemperature
from fairseq_llrnn.output.log_linear import LogLinearOutput
from fairseq_llrnn.plugin.compat.open_words import OpenStrings
from fairseq_llrnn.plugin.data.zero_mass import how_to_mend, refuse_impossible
from fairseq_llrnn.plugin.models import conditioning, target_terms
from fairseq_llrnn.plugin.models.all_words import word_log_probs
from fairseq_llrnn.plugin.models.class_rows import class_scores, rows_of_classes, rows_of_slots
from fairseq_llrnn.plugin.models.experts import check_experts, listen
from fairseq_llrnn.plugin.models.fingerprint import check_fingerprint, fingerprint_of
from fairseq_llrnn.plugin.models.search_memory import IncrementalState, SearchMemory
from fairseq_llrnn.prior.parts import EvidencePart
from fairseq_llrnn.prior.parts.open_vocabulary import open_table
from fairseq_llrnn.prior.prior import Prior

EncoderOut = dict[str, list[Tensor]]  # as the host's; "src_tokens" holds the source, (B, L)


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
        if prior.find(EvidencePart) is not None and encoder_size is not None:
            _refuse_plain(output, "evidence")
            self.slot_rows = SlotRows(encoder_size, output.weight.size(1))
        self.opened, self.open_table, self.strings = None, open_table(prior), None
        if self.open_table is not None:
            _refuse_plain(output, "an open vocabulary")
            self.opened = OpenMixture(self.open_table.vocabulary, int(output.class_of[dictionary.unk()]))
            self.strings = OpenStrings(self.opened, self.open_table, dictionary)
        self.experts: ExpertFeatures | None = None  # set by plugin/models/experts.py
        self.temperature: LearnedTemperature | None = None  # set by `learn_temperature`
        self.sampler: ClassSampler | None = None  # set by a criterion that trains with samples of the classes
        self.mend = how_to_mend(prior)
        self.bf16_products = bf16_products
        sizes = target_terms.log_class_sizes(self.background, [dictionary.eos(), dictionary.unk()])
        self.register_buffer("log_sizes", sizes, persistent=False)
        self.prior_folder = prior.folder
        self.register_buffer("prior_fingerprint", fingerprint_of(prior))

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

    # ---- scores, and what they need -------------------------------------------------------------------------------

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
        return class_scores(self.output, self.opened, hidden, extra), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: IncrementalState | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Hidden states (B, T, H), and the background along the positions. (B, 1, …) with `incremental_state`."""
        strings = self.strings if self.slot_rows is None else None  # a background with slots knows such ids itself
        known = prev_output_tokens if strings is None else strings.known(prev_output_tokens)
        memory, state = SearchMemory(self, incremental_state), None
        source = None if encoder_out is None else encoder_out["src_tokens"][0]
        if incremental_state is not None:
            given = conditioning.given_search(self.background, self.experts, source, memory)
            state = conditioning.advance(given, known, memory)
            background = conditioning.limited(given.background, known, memory)
        else:
            left_out = known if self.training else None
            if self.training and self.strings is not None:
                left_out = self.strings.as_in_text(prev_output_tokens, known)
            given = conditioning.given_batch(self.background, self.experts, source, left_out)
            background = given.background
        read = background.readable(known, state)
        if strings is not None and self.reads_open:
            read = strings.read_as(prev_output_tokens, read)
        with torch.autocast(known.device.type, torch.bfloat16, enabled=self._reduced):
            hidden, attention = self.hidden(read, encoder_out, incremental_state)
        extra: dict[str, Any] = {"attn": None if attention is None else [attention], "background": background}
        # here, inside `forward`, so that torch's DistributedDataParallel sees the output's parameters used
        extra |= rows_of_classes(self.output, self.opened, self.sampler if self.training else None, memory.keep)
        evidence = evidence_of(given.background)
        if evidence is not None:
            assert encoder_out is not None and self.slot_rows is not None
            of_slots = self.slot_rows, self.output, evidence, given.sentence, encoder_out["encoder_out"][0]
            extra["slots"] = memory.keep("slot rows", lambda: rows_of_slots(*of_slots))
        if self.experts is not None:
            hidden = listen(self.experts, hidden, known, state, extra, self.opened, memory.keep)
        if state is None:
            extra["along"] = Along(background, known)
            if self.temperature is not None:
                masses = self.temperature.applied(extra["along"].masses, hidden.flatten(0, 1))
                extra["along"].masses = masses
                extra["added"] = masses.added  # where DistributedDataParallel sees it used
        else:
            corrections = background.corrections(state)
            if self.temperature is not None and corrections is not None:
                corrections = self.temperature.applied(corrections, hidden[:, -1])
            extra |= {"state": state, "masses": corrections or background.log_mass(state)}
        return hidden.to(torch.bfloat16) if self._reduced else hidden, extra

    @property
    def reads_open(self) -> bool:
        """Whether the network reads unknown words by their open class: where its words are embedded by features."""
        return self.opened is not None and isinstance(getattr(self, "embedding", None), FeatureEmbedding)

    @property
    def _reduced(self) -> bool:
        return self.bf16_products and self.training

    def learn_temperature(self) -> None:
        """Give it weights for the background's temperature (output/learned_temperature.py).

        Raises:
            OptionError: a background that cannot have any.
        """
        if not self.background.sparse or self.slot_rows is not None:
            raise OptionError(
                "--learn-background-temperature: expected a prior with n-grams or an automaton, and without evidence; "
                "build one with `llrnn prior --background ngram:…` or `automaton:…`, or leave the option out"
            )
        self.temperature = LearnedTemperature(self.output.weight.size(1), self.output.rows.num_rows)

    # ---- training ---------------------------------------------------------------------------------------------------

    def target_log_prob(self, hidden: Tensor, extra: dict[str, Any], targets: Tensor) -> Tensor:
        """log p(target | K) in nats: hidden (B, T, H) and `extra` of extract_features, targets (B, T) -> (B, T).

        −inf for a target that the background forbids, padding included: the caller masks it.
        """
        return target_terms.target_log_prob(self.output, self.strings, hidden, extra, targets)

    def smoothing_gain(self, hidden: Tensor, extra: dict[str, Any], targets: Tensor) -> Tensor:
        """What label smoothing adds to these log-probabilities, in units of its ε: (B, T)."""
        return target_terms.smoothing_gain(self.output, self.strings, self.log_sizes, hidden, extra, targets)

    def adaptor_norm(self, hidden: Tensor, p: float = 2.0) -> Tensor:
        """‖a(K)‖ₚ at every position, hidden (B, T, H) of extract_features: (B, T). Experts' weights are part of a."""
        return target_terms.adaptor_norm(self.output, self.experts, hidden, p)

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

    # ---- searches, and all words ------------------------------------------------------------------------------------

    def search_state(self, incremental_state: IncrementalState) -> tuple[Background, Tensor]:
        """The background of a search, without experts, and its hypotheses' states in it, after the last step."""
        return conditioning.last_step(SearchMemory(self, incremental_state))

    def limit_length(self, incremental_state: IncrementalState, most: int) -> None:
        """Tell a search that its hypotheses may have at most so many tokens, `</s>` included, in all."""
        conditioning.limit(most, SearchMemory(self, incremental_state))

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        SearchMemory(self, incremental_state).reorder(new_order)

    def get_normalized_probs(
        self, net_output: tuple[Tensor, dict[str, Any]], log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor:
        """Probabilities of all words and slots, for the host's scorers and searches: (B, T, S + J) -> (B, T, V + J).

        Only a scorer hands over its sample; it would leave impossible targets out of its perplexity.
        """
        result = word_log_probs(self.output, *net_output)
        if sample is not None and sample.get("target") is not None:
            target = sample["target"]
            self.refuse_impossible(result.gather(2, target.unsqueeze(2)).squeeze(2), target, sample["id"])
        return result if log_probs else result.exp()

    # ---- the host's other questions ---------------------------------------------------------------------------------

    def max_positions(self) -> int:
        return 100_000  # recurrent: no limit of its own

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Refuse weights that were trained beside another prior."""
        check_fingerprint(self.prior_fingerprint, state_dict.get(f"{name}.prior_fingerprint"), self.prior_folder)
        check_experts(self.experts, state_dict.get(f"{name}.experts.weight"))
        self._upgrade_temperature(state_dict, f"{name}.temperature")
        return state_dict

    def _upgrade_temperature(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Weights of no learned temperature begin as zeros, with which it changes nothing; others need the option."""
        if self.temperature is not None:
            for part, value in self.temperature.state_dict().items():
                state_dict.setdefault(f"{name}.{part}", torch.zeros_like(value))
        elif f"{name}.weight" in state_dict:
            raise OptionError(
                "--learn-background-temperature: expected this option, with which the checkpoint was trained; give it"
            )


def _refuse_plain(output: LogLinearOutput, what: str) -> None:
    if output.formula == "plain":
        raise OptionError(f"--output-formula plain: not supported with a prior that has {what}; use signature")
