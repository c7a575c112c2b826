"""The criterion `log_linear`: −log p(target | K), exactly, at the cost of S signatures instead of V words.

`word_kinds` splits the vocabulary, and with it the validation loss, by a feature group. A word form whose analyses
agree in the group has that value as its kind (`NOUN`). If they differ, the kind is `mixed`. Without the group, it is
`other`. The end of a sentence is the kind `end`. `<unk>` and its strings are the kind `unknown`. The kinds are
disjoint, so their losses add up to the total.

Penalties are part of the training loss alone, so that the validation loss chooses the best epoch without them.

Training computes nats and, like fairseq, logs base 2. The gradient in the adaptor is E_p[φ] − φ(target).
"""

import difflib
import math
from argparse import ArgumentParser
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import EOS, UNK
from fairseq_llrnn.files.numbers import check_penalty
from fairseq_llrnn.head.checks import check_allowed
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.output.records import Batch
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.plugin.compat.option_checks import USUAL_NORM
from fairseq_llrnn.plugin.compat.user_errors import enter_command
from fairseq_llrnn.plugin.data.zero_mass import leaves_out
from fairseq_llrnn.plugin.kinds import KINDS
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.prior.prior import Prior

MIXED, OTHER, END, UNKNOWN = "mixed", "other", "end", "unknown"


def word_kinds(prior: Prior, group: str) -> tuple[list[str], np.ndarray]:
    """Return the names of the kinds, and the kind of every word (V,) int64.

    If the prior lacks the default group POS, or `group` is "none", the only kind besides `end` and `unknown` is
    `other`. A value with the name of one of these kinds, or of a part of the prior, keeps its group in the name:
    `Number:other`. The strings of a part are a kind of their own, with the part's name in logs and explanations.

    Raises:
        OptionError: the prior has no feature of that group.
    """
    features = prior.output.features
    groups = sorted({feature_group(name) for name in features.names})
    if group not in groups and group not in ("none", "POS"):
        near = difflib.get_close_matches(group, groups, n=1)
        raise OptionError(
            f"--report-group {group}: expected a feature group of the prior ({', '.join(groups)}) or `none`"
            + (f"; did you mean {near[0]}?" if near else "")
        )
    others = {MIXED, OTHER, END, UNKNOWN, *prior.names}
    kind_of_class: list[str] = []
    for signature in range(prior.output.num_classes):
        names = [name for name in features.row(signature) if feature_group(name) == group]
        if len(names) == 1:
            value = names[0].partition(":")[2]
            kind_of_class.append(names[0] if value in others else value)
        else:
            kind_of_class.append(MIXED if names else OTHER)
    kinds = sorted({*kind_of_class, END, UNKNOWN})
    index = {name: i for i, name in enumerate(kinds)}
    kind_of = np.array([index[k] for k in kind_of_class], dtype=np.int64)[prior.output.class_of]
    for symbol, kind in ((EOS, END), (UNK, UNKNOWN)):
        kind_of[prior.symbols.index(symbol)] = index[kind]
    return kinds, kind_of


MEAN, ROOT = "mean_of_", "root_of_"  # prefixes of sums over positions: the log has their mean, or its square root

LARGEST_NORM = 10.0  # larger powers overflow single precision


@dataclass
class LogLinearCriterionConfig(FairseqDataclass):
    """Options of log_linear."""

    adaptor_penalty: float = field(
        default=0.0,
        metadata={"help": "weight of a penalty on the adaptor's norm, which pulls p towards the background"},
    )
    adaptor_norm: float = field(
        default=USUAL_NORM, metadata={"help": "p of the p-norm in --adaptor-penalty, from 1 to 10, or inf"}
    )
    label_smoothing: float = field(
        default=0.0,
        metadata={
            "help": "label smoothing ε: part of every target that is spread evenly over all possible next words; if "
            "the background allows one word of a signature, all words of the signature count as possible"
        },
    )
    sampled_classes: int = field(
        default=0,
        metadata={
            "help": "train with about N signatures, sampled from the background, instead of all (0); the training loss "
            "is then an estimate, the validation loss is exact"
        },
    )
    report_group: str = field(
        default="POS",
        metadata={
            "help": "feature group that splits the validation loss, e.g. POS or Number, or `none` (the end of a "
            "sentence, unknown words and evidence are always separate)"
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("log_linear", dataclass=LogLinearCriterionConfig)
class LogLinearCriterion(FairseqCriterion):
    """Exact negative log-likelihood of a log-linear model, with optional label smoothing and a penalty on ‖a(K)‖."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add the criterion's options. fairseq calls it if a command line names the criterion."""
        super().add_args(parser)
        enter_command()

    def __init__(
        self,
        task: FairseqTask,
        adaptor_penalty: float,
        adaptor_norm: float,
        label_smoothing: float,
        sampled_classes: int,
        report_group: str,
        sentence_avg: bool,
    ) -> None:
        super().__init__(task)
        prior = getattr(task, "prior", None)
        if not isinstance(prior, Prior):
            raise OptionError(f"--criterion log_linear: expected a task that loads a prior: --task {', '.join(KINDS)}")
        check_penalty("--adaptor-penalty", adaptor_penalty)
        if not (1.0 <= adaptor_norm <= LARGEST_NORM or adaptor_norm == math.inf):
            raise OptionError(f"--adaptor-norm {adaptor_norm}: expected a number from 1 to {LARGEST_NORM:g}, or inf")
        if not 0.0 <= label_smoothing < 1.0:
            raise OptionError(f"--label-smoothing {label_smoothing}: expected a share from 0 to below 1, e.g. 0.1")
        if sampled_classes < 0:
            raise OptionError(f"--sampled-classes {sampled_classes}: expected 0 (all) or a number, e.g. 1000")
        if sampled_classes and label_smoothing:
            from fairseq_llrnn.output.sampled import NOT_SMOOTHED

            raise OptionError(NOT_SMOOTHED)
        self.prior, self.sampled_classes = prior, sampled_classes
        self.label_smoothing = label_smoothing
        self.adaptor_penalty = adaptor_penalty
        self.adaptor_norm = adaptor_norm
        self.sentence_avg = sentence_avg
        # sentences of background probability zero are not counted
        self.leaves_out = leaves_out(prior)
        kinds, kind_of = word_kinds(prior, report_group)
        self.kinds = kinds
        # no buffer: with several GPUs, fairseq moves only criteria that have parameters
        self.kind_of = torch.from_numpy(kind_of)

    def set_normaliser(self, head: LogLinearHead) -> None:
        """Let a head sum over sampled classes in training, with --sampled-classes. Call it before a training step."""
        if self.sampled_classes:
            from fairseq_llrnn.output.sampled import Sampled, SampledSum

            if not isinstance(head.normaliser, SampledSum):
                head.set_normaliser(Sampled(self.sampled_classes))

    def forward(
        self, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Return the loss in nats (a sum, or per position if not `reduce`), the sample size, and the values to log."""
        decoder = model.decoder
        if not isinstance(decoder, LogLinearDecoder):
            raise OptionError("--criterion log_linear: expected a log-linear model: --arch llrnn_…")
        head = decoder.head
        prepared = {"slots": sample["slots"]} if "slots" in sample else {}
        _, extra = model(**sample["net_input"], **prepared)
        target = model.get_targets(sample, None)
        mask = target.ne(self.padding_idx)
        batch: Batch = extra["batch"]
        log_prob = head.target_log_probs(batch, target, reduce and not self.leaves_out)
        tokens = sample["ntokens"]
        if self.leaves_out:
            mask = mask & ~(log_prob.isneginf() & mask).any(1, keepdim=True)
            tokens = int(mask.sum())
        elif bool((log_prob.isneginf() & mask).any()):
            check_allowed(head, log_prob, target, sample["id"], decoder.fix_zero_mass)
        nll = -log_prob.masked_fill(~mask, 0.0)
        loss = nll
        adaptor_penalty = self.adaptor_penalty if model.training else 0.0
        if self.label_smoothing or adaptor_penalty:
            options = self.label_smoothing, adaptor_penalty, self.adaptor_norm
            loss = head.regularised(nll, batch, target, *options).masked_fill(~mask, 0.0)
        network_terms = dict[str, Tensor]()
        for term in extra.get("terms", ()):
            values = term.values.masked_fill(~mask, 0)
            if term.in_loss and (model.training or not term.is_penalty):
                loss = loss + values
            network_terms[f"{ROOT if term.squares else MEAN}{term.name}"] = values.detach().sum()
        sentences = int(mask.any(1).sum()) if self.leaves_out else target.size(0)
        sample_size = sentences if self.sentence_avg else tokens
        logging_output: dict[str, Any] = {
            "loss": loss.detach().sum(),
            "nll_loss": nll.detach().sum(),
            "ntokens": tokens,
            "nsentences": sentences,
            "sample_size": sample_size,
            **network_terms,
        }
        if not model.training:
            with torch.no_grad():
                logging_output |= self._details(decoder, batch, nll, target, mask)
        return (loss.sum() if reduce else loss), sample_size, logging_output

    def _details(
        self, decoder: LogLinearDecoder, batch: Batch, nll: Tensor, target: Tensor, mask: Tensor
    ) -> dict[str, Tensor]:
        """Return sums for the validation log: ‖a‖₂, and the loss by kind of word, with strings of a source apart."""
        details, sources = dict[str, Tensor](), decoder.head.sources_of(batch, target)
        part_of = dict(zip((part.class_name for part in self.prior.parts), self.prior.names, strict=True))
        kinds = [*self.kinds, *(part_of.get(source.name, source.name) for source in decoder.head.sources)]
        if decoder.head.normaliser.rows_are_features:
            details["adaptor_norm"] = decoder.head.adaptor_norm(batch).masked_fill(~mask, 0.0).sum()
        self.kind_of = self.kind_of.to(target.device)
        kind = self.kind_of[with_unk(target, decoder.dictionary)]
        kind = torch.where(sources < 0, kind, len(self.kinds) + sources)[mask]
        sums = torch.zeros(len(kinds), device=nll.device, dtype=nll.dtype).index_add_(0, kind, nll[mask])
        sizes = torch.bincount(kind, minlength=len(kinds))
        for i, name in enumerate(kinds):
            details[f"nll_of_{name}"] = sums[i]
            details[f"count_{name}"] = sizes[i]
        return details

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        """Sum over workers and log: loss and nll_loss in base 2 (like fairseq), nats, perplexity, ‖a‖, kinds."""
        total: Counter[str] = Counter()
        for log in logging_outputs:
            total.update(log)
        # if all sentences of a batch were left out, its averages have no weight
        mean_loss = total["loss"] / (total["sample_size"] or 1)
        metrics.log_scalar("loss", mean_loss / math.log(2), total["sample_size"], round=3)
        nats = total["nll_loss"] / (total["ntokens"] or 1)
        metrics.log_scalar("nll_loss", nats / math.log(2), total["ntokens"], round=3)
        metrics.log_scalar("nats", nats, total["ntokens"], round=4)
        metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))
        if "adaptor_norm" in total:
            norm = total["adaptor_norm"] / (total["ntokens"] or 1)
            metrics.log_scalar("adaptor_norm", norm, total["ntokens"], round=3)
        for key in [k for k in total if k.startswith(MEAN)]:
            metrics.log_scalar(key.removeprefix(MEAN), total[key] / (total["ntokens"] or 1), total["ntokens"], round=4)
        for key in [k for k in total if k.startswith(ROOT)]:
            # the meter averages squares over batches; fairseq does not print a name with _
            metrics.log_scalar(f"_{key}", total[key] / (total["ntokens"] or 1), total["ntokens"])
            name = key.removeprefix(ROOT)
            metrics.log_derived(name, lambda meters, meter=f"_{key}": round(math.sqrt(meters[meter].avg), 1))
        for key in [k for k in total if k.startswith("count_") and total[k] > 0]:
            name = key.removeprefix("count_")
            metrics.log_scalar(f"nats_{name}", total[f"nll_of_{name}"] / total[key], total[key], priority=20, round=3)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True
