"""The smoothed cross-entropy over all words, by its definition, and priors to try it on."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.prior import EvidenceOptions, OpenOptions, Prior, Recipe, TranslationOptions
from fairseq_llrnn.prior.building import build_prior

FRENCH = "12 7 chat chien dort la le maison mer mers".split()
ENGLISH = "12 7 cat dog house sea sleeps the".split()
TARGETS = ["le chat dort 12", "la mer", "le chat le chien", "7 mers"]
SOURCES = ["the cat sleeps 12", "the sea", "the cat the dog", "7 sea"]
GRAMMAR = 'S -> "le" N V | "la" N V\nN -> "chat" | "mer"\nV -> "dort" | "12"\n'
EPSILON, H, E = 0.3, 3, 4


def prior_of(place: Path, background: str, evidence: tuple[str, ...], is_open: bool, top: int) -> Prior:
    french, english = [*SPECIALS, *FRENCH], [*SPECIALS, *ENGLISH]
    for name, lines in (("fr", TARGETS), ("en", SOURCES)):
        (place / f"train.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (place / "short.grammar").write_text(GRAMMAR, encoding="utf-8")
    bitext = ParallelText.read(place / "train.en", place / "train.fr", english, french)
    needs_bitext = "translations" in background or "translations" in evidence
    of_translations: dict[str, Any] = {"aligner": "ibm1"}
    if background == "translations":
        of_translations |= {"weight": 0.6, "learned": True}
    options = Recipe(
        text=place / "train.fr", top_words=top, suffixes=1, shapes=True,
        background=background.replace("GRAMMAR", str(place / "short.grammar")),
        translations=TranslationOptions(bitext, **of_translations) if needs_bitext else None,
        evidence=EvidenceOptions(evidence, weight=0.2) if evidence else None,
        open_vocabulary=OpenOptions(types=1) if is_open else None,
        source_dictionary=english if needs_bitext or evidence else None, workers=1,
    )  # fmt: skip
    return build_prior(french, options)


def smoothed(head: LogLinearHead, batch: Any, targets: Tensor) -> Tensor:
    """−(1 − ε) log p(target) − ε Σ_x q(x) log p(x), summed; q by the definition, word by word."""
    log_p, of_target = head.word_log_probs(batch), head.target_log_probs(batch, targets)  # (B, T, V + J), (B, T)
    classes = batch.view.column_classes.expand(targets.numel(), -1).view(log_p.shape)
    class_of, specials = head.output.class_of.tolist(), {class_of_special(head, s) for s in SPECIALS}
    loss = torch.zeros((), dtype=torch.float64)
    for row, position in targets.ne(head.pad).nonzero().tolist():
        may_come: dict[int, list[int]] = {}
        for column, log_prob in enumerate(log_p[row, position].tolist()):
            sigma = int(classes[row, position, column])
            if log_prob > -torch.inf and sigma not in specials:
                may_come.setdefault(sigma, []).append(column)
        sizes = {sigma: max(1, class_of.count(sigma)) for sigma in may_come}
        own = of_target[row, position]
        expected = own
        if sizes:
            each = [log_p[row, position, some].mean() * sizes[sigma] for sigma, some in may_come.items()]
            expected = torch.stack(each).sum() / sum(sizes.values())
        loss = loss - (1 - EPSILON) * own - EPSILON * expected
    return loss


def class_of_special(head: LogLinearHead, symbol: str) -> int:
    return int(head.output.class_of[head.prior.index(symbol)])


def check_smoothing(head: LogLinearHead, training: bool, reads_source: bool, seed: int) -> None:
    torch.manual_seed(seed)
    head.double().train(training)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_(0.0, 0.7)
    targets = head.encode(TARGETS)
    source = head.encode_source(SOURCES) if reads_source else None
    hidden = torch.randn(*targets.shape, H, dtype=torch.float64, requires_grad=True)
    states = None if source is None else torch.randn(*source.shape, E, dtype=torch.float64, requires_grad=True)
    inputs = [hidden, *([] if states is None else [states]), *head.parameters()]
    batch = head.batch(hidden, head.bind(head.previous(targets), source), states)
    possible = head.target_log_probs(batch, targets).isfinite() | targets.eq(head.pad)
    targets = torch.where(possible, targets, head.pad)  # what a grammar forbids is no target
    expected = smoothed(head, batch, targets)
    found = head.loss_of(batch, targets, EPSILON, reduction="sum")
    if head.has_learned_background:
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    options = {"allow_unused": True, "materialize_grads": True, "retain_graph": True}
    wanted, ours = (torch.autograd.grad(loss, inputs, **options) for loss in (expected, found))
    torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=2e-6)
