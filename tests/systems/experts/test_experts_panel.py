"""What a user's expert may do wrong, each with its message; how it is found and asked."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from few_words import EOS, PAD, PRIOR, TARGET_WORDS

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.systems.experts import panel as panels
from fairseq_llrnn.systems.experts.expert import Expert, Firing
from fairseq_llrnn.systems.experts.loading import load_experts
from fairseq_llrnn.systems.experts.panel import Contexts, Panel

IDS = {word: i for i, word in enumerate(TARGET_WORDS)}


class Says(Expert):
    """Says what it is told to say, and remembers what it was asked."""

    def __init__(self, fires: Callable[..., Any], looks_at_prefix: bool = False) -> None:
        self._fires = fires
        self.looks_at_prefix = looks_at_prefix
        self.asked: list[tuple[Sequence[str], Sequence[str]]] = []

    def fires(self, source: Sequence[str], prefix: Sequence[str]) -> Firing:
        self.asked.append((source, prefix))
        return self._fires(source, prefix)


def panel_of(*experts: Expert) -> Panel:
    ignored = frozenset((PAD, EOS))
    prior: Any = PRIOR
    return Panel(experts, prior, TARGET_WORDS.__getitem__, IDS.get, str, eos=EOS, pad=PAD, ignored=ignored)


def test_an_expert_that_raises_is_named_with_the_sentence_and_its_line() -> None:
    def fires(source: Sequence[str], prefix: Sequence[str]) -> Firing:
        raise KeyError("no such town")

    panel = panel_of(Says(fires, looks_at_prefix=True))
    with pytest.raises(DataError) as caught:
        panel.ask(("how", "many"), ("deux",))
    message = str(caught.value)
    assert message.startswith("expert Says, for the source 'how many' and the target so far 'deux': fires failed")
    assert "KeyError: 'no such town'" in message and "test_experts_panel.py, line " in message
    assert isinstance(caught.value.__cause__, KeyError)


def test_answers_to_few_sources_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "MOST_KEPT", 2)
    says = Says(lambda source, prefix: Firing(everywhere=len(source)))
    panel = panel_of(says)
    for source in (("a",), ("a", "b"), ("a",), ("a", "b", "c"), ("a",)):
        assert panel.ask(source, ()).coefficients == ({0: float(len(source))},)
    assert [len(source) for source, _ in says.asked] == [1, 2, 3, 1]
    assert len(panel._firings) <= 2


def test_an_expert_that_cannot_be_opened_is_named() -> None:
    class Closed(Expert):
        def open(self, prior: object) -> None:
            raise FileNotFoundError("towns.tsv")

    with pytest.raises(DataError, match=r"expert Closed: open failed: FileNotFoundError: towns.tsv \(.*line \d+\)"):
        panel_of(Closed())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "expected a Firing, found NoneType; return Firing"),
        (Firing(groups=["POS:N"]), "expected groups and exceptions by name"),  # type: ignore[arg-type]
        (Firing(everywhere=math.nan), "expected finite numbers, found nan for 'everywhere'"),
        (Firing(exceptions={"deux": math.inf}), "expected finite numbers, found inf for 'deux'"),
        (Firing(everywhere=math.nan, exceptions={"everywhere": 1.0}), "expected finite numbers, found nan for"),
        (Firing(groups={"POS:N": math.nan}, exceptions={"POS:N": 1.0}), "expected finite numbers, found nan for"),
        (Firing(exceptions={"deux": "1"}), "expected finite numbers, found '1' for 'deux'"),  # type: ignore[dict-item]
        (Firing(groups={"POS:Nom": 1.0}), "output features of the prior, found 'POS:Nom'; `llrnn show`"),
    ],
)
def test_wrong_answers_are_refused(answer: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        panel_of(Says(lambda source, prefix: answer)).ask(("a",), ())


def test_values_may_be_numbers_of_any_kind() -> None:
    firing = Firing(groups={"POS:N": np.float32(0.5), "NOTTOP": 1}, exceptions={"deux": True})
    answer = panel_of(Says(lambda source, prefix: firing)).ask((), ())
    assert answer.exceptions == {IDS["deux"]: (1.0,)}
    assert answer.coefficients == ({1: 0.5, 2: 1.0},)


def test_an_exception_in_no_dictionary_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    panel = panel_of(Says(lambda source, prefix: Firing(exceptions={"nobody": 1.0, "deux": 2.0})))
    assert panel.ask(("a",), ()).exceptions == {IDS["deux"]: (2.0,)}
    panel.ask(("b",), ())
    assert [r.message for r in caplog.records] == [
        "expert Says: the exception 'nobody' is in no dictionary, and is ignored (no further warnings)"
    ]


def test_padding_is_no_exception() -> None:
    panel = panel_of(Says(lambda source, prefix: Firing(exceptions={"<pad>": 1.0})))
    with pytest.raises(DataError, match="expected exceptions that can be the next word, found '<pad>'"):
        panel.ask((), ())


def test_every_source_is_asked_about_once_and_every_prefix_of_it() -> None:
    still, moving = Says(lambda *_: Firing()), Says(lambda *_: Firing(), looks_at_prefix=True)
    sources = torch.tensor([[5, 6, 2], [1, 7, 2], [5, 6, 2]])
    contexts = Contexts(panel_of(still, moving), sources)
    previous = torch.tensor([[EOS, 4, 5], [EOS, 4, 5], [EOS, 4, 6]])
    along = contexts.per_position(previous)
    assert still.asked == [(("5", "6"), ()), (("7",), ())]
    assert [prefix for source, prefix in moving.asked if source == ("7",)] == [(), ("deux",), ("deux", "12")]
    assert [prefix for source, prefix in moving.asked if source == ("5", "6")] == [
        (), ("deux",), ("deux", "12"), ("deux", "99"),
    ]  # fmt: skip
    assert len(set(along.flatten().tolist())) == along.numel(), "every sentence has contexts of its own"


def test_after_the_end_the_prefix_is_empty_and_padding_changes_nothing() -> None:
    expert = Says(lambda *_: Firing(), looks_at_prefix=True)
    contexts = Contexts(panel_of(expert), None)
    along = contexts.per_position(torch.tensor([[EOS, 4, EOS, 5, PAD], [EOS, EOS, 4, PAD, PAD]]))
    assert along[0, 0] == along[0, 2] == along[1, 1]
    assert along[0, 3] == along[0, 4] and along[0, 1] == along[1, 2] == along[1, 4]
    assert expert.asked == [((), ()), ((), ("deux",)), ((), ("12",))]


# ---- loading ----------------------------------------------------------------------------------------------------

FILE = """
from dataclasses import dataclass
from fairseq_llrnn.systems.experts.expert import Expert, Firing

@dataclass
class Table:
    rows: "list[str]"

class Mine(Expert):
    def fires(self, source, prefix):
        return Firing(1.0)

class Greedy(Expert):
    def __init__(self, table):
        pass

class Other:
    pass
"""


def test_a_class_is_found_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE, encoding="utf-8")
    one, other = load_experts(f"{file}:Mine, {file}:Mine")
    assert one.fires((), ()) == Firing(1.0) and one.name == other.name == "Mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py", "expected a file and a class in it, as --expert path/to/file.py:ClassName; found 'mine.py'"),
        ("mine:Mine", "expected a file and a class in it"),
        ("none.py:Mine", "expected a file of Python code, found no none.py"),
        ("mine.py:Yours", "found none of that name; experts in the file: Mine, Greedy"),
        ("mine.py:Other", "found type; experts in the file"),
        ("mine.py:Greedy", "cannot be created without arguments"),
        ("broken.py:Mine", r"failed at import: ZeroDivisionError: division by zero \(.*broken.py, line 2\)"),
    ],
)
def test_what_is_no_expert_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE, encoding="utf-8")
    Path("broken.py").write_text("x = 1\ny = x / 0\n", encoding="utf-8")
    with pytest.raises(OptionError, match=message):
        load_experts(name)
