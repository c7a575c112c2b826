"""The dates of examples/extending/llrnn_dates.py, which no dictionary has: alone, and next to copied numbers."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from guide_pages import ROOT
from torch import Tensor

from fairseq_llrnn import LogLinearHead, extend
from fairseq_llrnn.backgrounds.background import Background
from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.output.class_source import ClassSource
from fairseq_llrnn.output.context_classes import ContextClasses, layers_of
from fairseq_llrnn.output.context_source import NO_WORD
from fairseq_llrnn.prior import EvidenceOptions, Prior, Recipe, register_part
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.evidence_part import evidence_table
from fairseq_llrnn.testing import check_background, check_class_features, check_context_classes

EXTENDING = ROOT / "examples" / "extending"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
ENGLISH = [*SPECIAL, "on", "from", "to", "25", "November", "2026", "2026-01-02"]
FRENCH = [*SPECIAL, "le", "du", "au", "25/11/2026", "02.01.2026"]
SOURCES = ["on 25 November 2026 17", "from 2026-01-02 to 3.1.2026", "on on", "on 2026-11-25 2026-11-25 40.1.2026 99"]
TARGETS = ["le 25/11/2026 17", "du 2026-01-02 au 03.01.2026", "le", "le 2026-11-25 99 Zoé"]
H, E = 5, 3


@pytest.fixture
def dates(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXTENDING))
    sys.modules.pop("llrnn_dates", None)
    import llrnn_dates  # type: ignore[import-not-found]

    return llrnn_dates


def build(evidence: bool = False, **more: Any) -> Prior:
    options = {"evidence": EvidenceOptions(("numbers",))} if evidence else {}
    recipe = Recipe(top_words="all", background="dates(weight=0.3)", source_dictionary=ENGLISH)
    return build_prior(FRENCH, replace(recipe, **options, **more))


def make(prior: Prior) -> tuple[LogLinearHead, Tensor, Tensor, Tensor, Tensor]:
    """A head in float64, sources, their states, targets and hidden states."""
    torch.manual_seed(3)
    head = LogLinearHead(prior, H, source_size=E).double().eval()
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    source, target = head.encode_source(SOURCES), head.encode(TARGETS)
    states = torch.randn(*source.shape, E, dtype=torch.float64)
    return head, source, states, target, torch.randn(*target.shape, H, dtype=torch.float64)


@pytest.mark.parametrize("evidence", [False, True])
def test_the_law_and_sums_of_one(dates: ModuleType, evidence: bool) -> None:
    head, source, states, target, hidden = make(build(evidence))
    check_context_classes(head.background.bind(source), torch.randint(0, len(FRENCH), (4, 5)))
    given = {"source": source, "source_states": states, "previous": head.previous(target)}
    log_probs = head.log_probs(hidden, **given)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(target.shape, dtype=torch.float64))
    offered = head.sources_of(head.batch(hidden, head.bind(given["previous"], source), states), target)
    for number, strings in enumerate(
        (["03.01.2026", "2026-01-02", "2026-11-25", "25/11/2026"], *([["17", "99"]] if evidence else []))
    ):
        assert sorted(head.decode(target[offered == number].unsqueeze(1))) == strings
    phi, index = check_class_features(head, hidden, target, source, states), head.prior.output.features.index
    strings = dates.DateClasses(head.prior, source, 0.3)
    for sentence, column in (strings.words(torch.arange(4)) >= 0).nonzero().tolist():
        of_string = phi["dates"].unflatten(0, target.shape)[sentence, :, column]
        name = list(dates.WRITTEN.values())[strings.form[sentence, column]]
        assert (of_string[:, index[name]] == 1).all() and (of_string.sum(1) == 1).all()
    assert phi.keys() == {source.name for source in head.sources}
    assert [source.name for source in head.sources] == ["dates", *(["slot_rows"] * evidence)]
    found = head.top_k(hidden[:, 0].repeat_interleave(2, 0), head.start(8, **_twice(source, states)), 4)[0]
    torch.testing.assert_close(found[1::2], log_probs[:, 0].topk(4).values)


def test_a_search_tells_sentences_of_equal_words_by_their_states(dates: ModuleType) -> None:
    head, source, states, target, hidden = make(build(evidence=True))
    given = {"source": source[:1].expand(3, -1), "source_states": states[[0, 1, 1]]}
    log_probs = head.log_probs(hidden[:3], previous=head.previous(target[:3]), **given)
    state = head.start(3, **given)
    torch.testing.assert_close(head.top_k(hidden[:3, 0], state, 4)[0], log_probs[:, 0].topk(4).values)
    assert len(state.background.source.words(torch.arange(2))) == 2, "of two sentences"  # type: ignore[attr-defined]


def test_log_probs_need_the_text_so_far_where_a_source_does(dates: ModuleType) -> None:
    prior = build(evidence=True)
    evidence_table(prior).once = True
    head, source, states, target, hidden = make(prior)
    assert not head.needs_context
    with pytest.raises(DataError, match="the background needs `previous`, the tokens before each position"):
        head.log_probs(hidden, source=source, source_states=states)
    assert head.log_probs(hidden, source=source, source_states=states, previous=head.previous(target)).exp().sum() > 0


def _twice(source: Tensor, states: Tensor) -> dict[str, Tensor]:
    """Two hypotheses of each sentence."""
    return {"source": source.repeat_interleave(2, 0), "source_states": states.repeat_interleave(2, 0)}


@pytest.mark.parametrize("behind", [False, True])
def test_marks_of_what_is_asked_for_come_to_evidence_alone(dates: ModuleType, behind: bool) -> None:
    """Whether a part stands before evidence or behind it, which reads the marks that source tokens carry."""
    prior = build(evidence=True)
    prior = replace(prior, parts=prior.parts[::-1]) if behind else prior
    read: list[int] = []

    class Reader(ClassSource):
        name = "reader"

        def bind(self, background: Background, source: Tensor | None) -> Background:
            assert source is not None
            read.append(int(source.max()))
            return background

    head = LogLinearHead(prior, H, source_size=E, classes=[lambda head: Reader()]).double().eval()
    source = head.encode_source(SOURCES)
    table = prior.offers()
    assert table is not None
    marked = source.clone()
    marked[:, 0] = torch.tensor([table.groups.marked(token, ()) for token in source[:, 0].tolist()])
    assert (marked[:, 0] > 2**32).all()
    target, states = head.encode(TARGETS, source=marked), torch.randn(*source.shape, E, dtype=torch.float64)
    hidden = torch.randn(*target.shape, H, dtype=torch.float64)
    losses = [head.loss(hidden, target, source=each, source_states=states) for each in (source, marked)]
    torch.testing.assert_close(*losses)
    head.start(4, source=marked, source_states=states)
    assert len(read) == 3 and max(read) < 2**32


@pytest.mark.parametrize("evidence", [False, True])
def test_every_term_of_an_explanation_is_named(dates: ModuleType, evidence: bool) -> None:
    head, source, states, target, hidden = make(build(evidence))
    losses = head.loss(hidden, target, source=source, source_states=states, reduction="none")
    kinds = {}
    for i in range(len(SOURCES)):
        tokens = target[i][target[i] != head.pad]
        one = {"source": source[i : i + 1], "source_states": states[i : i + 1]}
        for said, loss in zip(head.explain(hidden[i : i + 1, : len(tokens)], tokens, **one), losses[i], strict=False):
            terms = said.log_background + said.normaliser + sum(weight for _, weight in said.own_features)
            assert said.log_prob == pytest.approx(-loss.item()) == pytest.approx(terms)
            kinds[said.token] = {name.partition(":")[0] for name, _ in said.own_features}
    assert kinds["2026-01-02"] == kinds["25/11/2026"] == {"Class"} and kinds["le"] == {"TOPFORM"}
    assert "Zoé" not in kinds and ("Evidence" in kinds["17"] if evidence else "17" not in kinds)


def test_features_of_a_part_are_those_of_its_prior(dates: ModuleType, tmp_path: Path) -> None:
    """No word has them, classes are learned by them, and a saved prior has to have them."""
    prior, bare = build(), build_prior(FRENCH, Recipe(top_words="all"))
    names = ["Date:Dashes", "Date:Slashes", "Date:Points"]
    assert [*prior.output.features.names] == [*bare.output.features.names, *names] and prior.input is prior.output
    assert (prior.output.class_of == bare.output.class_of).all()
    head, source, states, target, hidden = make(prior)
    head.loss(hidden, target, source=source, source_states=states).backward()
    learned = [head.output.weight.grad, head.output.bias.grad]
    assert all(grad is not None and grad[-3:].flatten(1 - grad.dim()).any() for grad in learned)
    read = replace(prior, input=bare.output)  # a network that reads other features
    assert read.with_part(prior.parts[0]).input is bare.output
    prior.save(tmp_path / "prior")
    assert Prior.load(tmp_path / "prior").fingerprint == prior.fingerprint
    described = json.loads((tmp_path / "prior" / "prior.json").read_text(encoding="utf-8"))
    described["output_features"][-1] = "Date:Commas"
    (tmp_path / "prior" / "prior.json").write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(PriorError, match="the dates has no feature Date:Points; build it again"):
        Prior.load(tmp_path / "prior")


def test_the_row_of_a_class_is_that_of_its_features(dates: ModuleType) -> None:
    """Slowly: a(K)ᵀφ, and P s."""
    head, source, states, target, hidden = make(build())
    adaptor = head.output.adaptor(hidden[:1, 0])[0]  # (F,)
    at, string = states[0, 1:4].mean(0), head.prior.session.target.index("2026-11-25")
    score = adaptor[head.prior.output.features.index["Date:Dashes"]] + hidden[0, 0] @ head.sources[0].pointer @ at
    said = head.explain(hidden[:1, :1], torch.tensor([string]), source=source[:1], source_states=states[:1])[0]
    assert dict(said.own_features)["Class:DateClasses"] == pytest.approx(score.item())


def test_a_model_without_strings_says_unk_of_them_all_alike(dates: ModuleType) -> None:
    """As in an ensemble of fairseq: its <unk> is shared by the unknown strings of all sources, each once."""
    pytest.importorskip("fairseq")
    from fairseq_llrnn.plugin.search.columns import with_unknown_slots

    head, source, *_ = make(build(evidence=True))
    bound = head.background.bind(source)
    view, answer = bound.view(bound.start(4)), torch.randn(4, len(FRENCH)).log_softmax(1)
    wide = with_unknown_slots(answer, view, head.unk)
    torch.testing.assert_close(wide.exp().sum(1), torch.ones(4))
    strings = [[head.prior.session.target.symbols[x] for x in row[len(FRENCH) :]] for row in view.columns]
    spread = [{s for s, value in zip(*both, strict=True) if value > -torch.inf}
              for both in zip(strings, wide[:, len(FRENCH) :].tolist(), strict=True)]  # fmt: skip
    assert spread[0] == {"17", "2026-11-25", "25.11.2026"} and not spread[2]
    assert spread[3] == {"99", "40.1.2026", "2026-11-25", "25.11.2026"}  # no date, but a number


def test_a_copy_of_a_head_numbers_strings_alike(dates: ModuleType) -> None:
    head = LogLinearHead(build(), H, source_size=E)
    assert copy.deepcopy(head).encode(["le 01.01.1900"]).equal(head.encode(["le 01.01.1900"]))


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_what_a_head_lacks_is_named(dates: ModuleType) -> None:
    head, source, _, target, hidden = make(build())
    with pytest.raises(DataError, match=r"dates needs source_states, the encoder's states"):
        head.loss(hidden, target, source=source)
    plain = LogLinearHead(build_prior(FRENCH, Recipe(top_words="all")), H, source_size=E)
    with pytest.raises(DataError, match="encode_source needs a prior with source words"):
        plain.encode_source(SOURCES)

    class Mute(dates.Dates):  # type: ignore[name-defined, misc]
        has_source_strings = False

    mute = LogLinearHead(replace(head.prior, parts=(Mute(0.3),)), H, source_size=E)
    read, written = mute.encode_source(SOURCES), mute.encode(TARGETS)
    with pytest.raises(OptionError, match="the classes of DateClasses contain strings, which need source_size"):
        mute.loss(hidden.float(), written, source=read, source_states=torch.zeros(*read.shape, E))
    with pytest.raises(ValueError, match="part ignorant: has_source_strings = True needs needs_source = True; add"):
        register_part("ignorant")(type("Ignorant", (extend.Part,), {"has_source_strings": True}))


def test_the_source_dictionary_is_found_kept_and_compared(dates: ModuleType, tmp_path: Path) -> None:
    for language, words in (("en", ENGLISH), ("fr", FRENCH)):
        lines = "".join(f"{word} 1\n" for word in words[4:])
        (tmp_path / f"dict.{language}.txt").write_text(lines, encoding="utf-8")
    recipe = Recipe(background="dates", top_words="all")
    build_prior(tmp_path / "dict.fr.txt", recipe).save(tmp_path / "prior")
    prior = Prior.load(tmp_path / "prior")
    assert prior.source_symbols == tuple(ENGLISH)
    assert build().fingerprint != build(source_dictionary=ENGLISH[:-1]).fingerprint
    prior.check_source_dictionary(ENGLISH, "dict.en.txt")
    with pytest.raises(PriorError, match=r"the prior's parts were made for another source dictionary than dict.de.txt"):
        prior.check_source_dictionary(ENGLISH[:-1], "dict.de.txt")
    (tmp_path / "dict.de.txt").write_text("ein 1\n", encoding="utf-8")
    with pytest.raises(OptionError, match=r"--background dates: expected one other dict.* found dict.de.txt, dict.en"):
        build_prior(tmp_path / "dict.fr.txt", recipe)
    with pytest.raises(OptionError, match="source_dictionary: it needs translations, evidence or a background tha"):
        build_prior(tmp_path / "dict.fr.txt", Recipe(source_dictionary=ENGLISH))


def same_word_twice(source: Any) -> None:
    source._words[0, 1] = source._words[0, 0]


def mass_of_nothing(source: Any) -> None:
    source._log_added[2, 0] = 0.0


def too_few_rows(source: Any) -> None:
    source.rows = 2


def another_order(source: Any) -> None:
    source.start = lambda n: torch.arange(n).flip(0)


def another_shape(source: Any) -> None:
    source._log_added = source._log_added[:, :1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (same_word_twice, r"law broken: the words of context 0 \(at the beginning\) differ; found \["),
        (mass_of_nothing, r"law broken: log_added is −inf where words is NO_WORD .*not so at \[\[2, 0\]\]"),
        (another_order, r"law broken: start\(rows\) counts the contexts, unless they change; found \[\d"),
        (another_shape, r"law broken: log_added has the shape of words; found \(\d+, 1\)"),
        (too_few_rows, r"law broken: start\(n\) are indices below `rows`, 2; found \[0, 1, 2, 3\]"),
    ],
)
def test_what_a_source_itself_breaks_is_named(dates: ModuleType, change: Callable[[Any], None], says: str) -> None:
    head, source, *_ = make(build())
    bound = head.background.bind(source)
    assert isinstance(bound, ContextClasses)
    change(bound.source)
    with pytest.raises(AssertionError, match=says):
        check_context_classes(bound, torch.randint(0, len(FRENCH), (4, 5)))


def test_context_classes_have_a_check_of_their_own(dates: ModuleType) -> None:
    head, source, *_ = make(build())
    with pytest.raises(TypeError, match=r"found those of DateClasses; use check_context_classes\(background.bind"):
        check_background(head.background, source=source)


# ---- what it is made of ---------------------------------------------------------------------------------------------


def test_strings_of_evidence_stand_in_front_of_those_of_others(dates: ModuleType) -> None:
    head, source, *_ = make(build(evidence=True))
    assert isinstance(head.background, EvidenceBackground)
    bound = head.background.bind(source)
    inner, outer = (layer.bound for layer in layers_of(bound.view(bound.start(4))))
    assert isinstance(inner.source, dates.DateClasses) and (inner.source.words(torch.arange(4))[2] == NO_WORD).all()
    assert outer is bound


def test_the_module_for_extensions_names_what_it_has_and_imports_nothing_else() -> None:
    program = "import sys; from fairseq_llrnn.extend import DataError; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"
    text = Path(extend.__file__).read_text(encoding="utf-8")
    for name in extend.__all__:
        assert getattr(extend, name) is not None and f"import {name} as {name}\n" in text
    assert text.count(" as ") == len(extend.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Parts'; it has .*BySource"):
        extend.__getattr__("Parts")
