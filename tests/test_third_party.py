"""Other people's package adds backgrounds, sources of classes, readers, cells, options by entry points alone."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shell import Shell
from tiny_world import World

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior

MODULE = '''
"""Days of the week: their features from a list, and a background that makes them as likely as a list says.

Behind a day, the next one has a class of its own: a row of the output layer next to that of its signature.
"""

from dataclasses import dataclass

import numpy as np
import torch

from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.output.class_source import ClassSource
from fairseq_llrnn.backgrounds.by_source import BySource
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.context_source import NO_WORD, ContextClassSource
from fairseq_llrnn.prior import Part, register_part
from fairseq_llrnn.prior.named_backgrounds import register_background


def read_days(path, lowercase, language):
    lexicon = Lexicon()
    for line in open(path, encoding="utf-8"):
        lexicon.add(line.split()[0], ["Time:Day"])
    return lexicon


@register_part("weighted_days")
@dataclass(frozen=True)
class WeightedDays(Part):
    log_weights: np.ndarray
    is_base = True

    def arrays(self):
        return {"log_weights": self.log_weights}

    @classmethod
    def read(cls, saved):
        return cls(saved.array("log_weights", np.float64))

    def background(self, below, context):
        return StaticBackground(context.class_of, context.num_classes, torch.from_numpy(self.log_weights.copy()))


@register_background("days", WeightedDays, example="days:list.txt")
def weighted(source, prior, given):
    weights = dict(line.split() for line in open(source, encoding="utf-8"))
    each = np.log([float(weights.get(word, 1.0)) for word in prior.symbols])
    return WeightedDays(each), {}


class DayAfterDay(ContextClassSource):
    """A context is the word before."""

    rows, width, changes = 1, 1, True

    def __init__(self, following):
        self.following = following  # (V,) the next day, NO_WORD for other words

    def start(self, n):
        return torch.zeros(n, dtype=torch.int64)

    def words(self, contexts):
        return self.following[contexts].unsqueeze(-1)

    def advance(self, contexts, tokens):
        return tokens


class DayRows(ClassSource):
    name, kind = "next_days", DayAfterDay

    def __init__(self, head):
        super().__init__()
        self.row, self.bias = (torch.nn.Parameter(torch.zeros(size)) for size in (head.hidden_size, 1))

    def rows_at(self, place):
        shape = place.shape
        return self.row.expand(*shape, 1, -1), self.bias.expand(*shape, 1)


@register_part("next_days")
@dataclass(frozen=True)
class NextDays(Part):
    days: np.ndarray  # tokens, in order
    class_name = "next_days"

    def arrays(self):
        return {"days": self.days}

    @classmethod
    def read(cls, saved):
        return cls(saved.array("days", np.int64))

    def background(self, below, context):
        following = torch.full((len(context.prior.symbols),), NO_WORD)
        following[self.days[:-1]] = torch.from_numpy(self.days[1:].copy())
        made = lambda base, source: ContextClasses(base, DayAfterDay(following))
        return BySource(below, made, needs_source=False)

    def class_source(self, head):
        return DayRows(head)


@register_background("next_days", NextDays, example="next_days")
def following(source, prior, given):
    return NextDays(np.array([prior.symbols.index(day) for day in ("monday", "tuesday")])), {}
'''
CELL = '''
"""A cell whose state is the mean of what it has read."""

import torch

from fairseq_llrnn.networks.recurrent import Cell, register_cell


class Mean(torch.nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.read = torch.nn.Linear(input_size, hidden_size)

    def forward(self, x, before=None):
        hidden, state = [], x.new_zeros(()) if before is None else before[0]
        for step in self.read(x).unbind(1):
            state = (state + step) / 2
            hidden.append(state)
        return torch.stack(hidden, 1), state.unsqueeze(0)


register_cell("mean", Cell(Mean, states=1, gates=1, about="a mean"))
'''
CELLS = """
import sys, torch
from fairseq_llrnn.networks.recurrent import all_cells
from fairseq_llrnn.networks.recurrent import RecurrentNetwork
assert "weekday_cells" not in sys.modules
network, x = RecurrentNetwork(2, 3, num_layers=2, cell="mean"), torch.randn(4, 5, 2)
whole = network(x)[0]
print(whole.shape == (4, 5, 3), torch.allclose(whole[:, 3:], network(x[:, 3:], network(x[:, :3])[1])[0]),
      {"gru", "mean"} <= set(all_cells()))
"""
CELL_OPTION = """
import fairseq_llrnn
fairseq_llrnn.register()
from fairseq_llrnn.plugin.models.options import RecurrentDecoderConfig
cell = RecurrentDecoderConfig.__dataclass_fields__["cell"]
print("mean" in {choice.value for choice in cell.type}, "mean: a mean" in cell.metadata["help"])
"""
TRAINING = """
import sys, torch
from fairseq_llrnn import LogLinearHead, Prior
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.testing import check_class_features

torch.manual_seed(1)
head = LogLinearHead(Prior.load(sys.argv[1]), 5)
targets, hidden = head.encode(["monday tuesday sun", "rain monday rain"]), torch.randn(2, 4, 5)
before = head.loss(hidden, targets)
before.backward()
torch.optim.SGD(head.parameters(), 0.1).step()
moved = all(bool(p.grad.any()) for p in head.next_days.parameters())
sums = head.eval().log_probs(hidden, previous=head.previous(targets)).exp().sum(-1)
state = head.advance(head.start(2), targets[:, :1])
whole = head.log_probs(hidden, previous=head.previous(targets))[:, 1]
found = head.top_k(hidden[:, 1], state, 3)[0]
said = list(head.explain(hidden[:1], targets[0]))
sound = all(abs(word.log_prob - word.log_background - word.normaliser - sum(a for _, a in word.own_features)) < 1e-5
            for word in said)
own = any(name == "Class:DayAfterDay" for word in said for name, _ in word.own_features)
exact = LogLinearHead(head.prior, 5).double()
plain = not check_class_features(exact, hidden.double(), targets)["next_days"].any()
print(moved, sound and own and plain, bool(head.loss(hidden, targets) < before), float((sums - 1).abs().max()) < 1e-5,
      torch.allclose(found, whole.topk(3).values))
"""
EXTENSION = '''
"""An option of all models that end in a head, and what it makes of the head."""

from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, HEAD, Extension


@dataclass
class PowerConfig(FairseqDataclass):
    mass_power: float = field(default=1.0, metadata={"help": "power of the background"})


class Power:
    name = "power"

    def __init__(self, power):
        self.power = power


class Powers(Extension):
    options = {HEAD: PowerConfig}

    def head_arguments(self, args, task):
        power = getattr(args, "mass_power", 1.0)
        return {} if power == 1.0 else {"mass_change": lambda head: Power(power)}


EXTENSIONS.append(Powers())
'''
OPTIONS = """
import argparse, fairseq_llrnn
from types import SimpleNamespace
fairseq_llrnn.register()
from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
from fairseq_llrnn.plugin.models.extensions import all_head_arguments
config = MODEL_DATACLASS_REGISTRY["llrnn_lbl"]
parser = argparse.ArgumentParser()
MODEL_REGISTRY["llrnn_transformer"].add_args(parser)
print(config().mass_power, parser.parse_args(["--mass-power", "0.5"]).mass_power)
task = SimpleNamespace(prior=None)
print(all_head_arguments(config(), task), all_head_arguments(config(mass_power=0.5), task)["mass_change"](None).power)
"""
TASK_EXTENSION = '''
"""An option of all tasks: sentences that training does not see."""

from dataclasses import dataclass, field

from fairseq.data import BaseWrapperDataset
from fairseq.dataclass import FairseqDataclass
from fairseq_llrnn.plugin.kinds import KINDS
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, Extension, TaskExtension

TASKS = tuple(KINDS)


@dataclass
class SkipConfig(FairseqDataclass):
    skip_sentences: int = field(default=0, metadata={"help": "sentences that training does not see"})


class Shorter(BaseWrapperDataset):
    def __init__(self, data, skipped):
        super().__init__(data)
        self.skipped = skipped

    def __len__(self):
        return len(self.dataset) - self.skipped


class Skips(TaskExtension):
    def __init__(self, skipped):
        self.skipped = skipped

    def changed_data(self, pairs, training, first):
        assert first() is pairs
        return Shorter(pairs, self.skipped) if training else pairs


class Skip(Extension):
    options = dict.fromkeys(TASKS, SkipConfig)

    def task_extension(self, task, from_checkpoint):
        return Skips(task.options.skip_sentences)


EXTENSIONS.append(Skip())
'''
TASK_OPTIONS = """
import sys, fairseq_llrnn
fairseq_llrnn.register()
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from tiny_world import build
from weekday_tasks import TASKS
task, sizes = build(sys.argv[1:]).task, []
for combine in (True, False):
    task.load_dataset("train", combine=combine)
    sizes.append(len(task.datasets["train"]))
takes = ["skip_sentences" in TASK_DATACLASS_REGISTRY[name].__dataclass_fields__ for name in TASKS]
print(all(takes) and len(takes) >= 2, *sizes)
"""
ENTRY_POINTS = """
[fairseq_llrnn.parts]
days = weekday_words
[fairseq_llrnn.readers]
days = weekday_words:read_days
broken = weekday_words:nothing
raising = raising_words:read
[fairseq_llrnn.cells]
mean = weekday_cells
[fairseq_llrnn.plugins]
powers = weekday_powers
tasks = weekday_tasks
"""
WORDS = ("monday", "tuesday", "rain", "sun")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installed: a module and its metadata in a folder that Python looks into."""
    place = tmp_path / "site-packages"
    (place / "weekday_words-1.0.dist-info").mkdir(parents=True)
    (place / "weekday_words.py").write_text(MODULE, encoding="utf-8")
    (place / "weekday_powers.py").write_text(EXTENSION, encoding="utf-8")
    (place / "weekday_cells.py").write_text(CELL, encoding="utf-8")
    (place / "weekday_tasks.py").write_text(TASK_EXTENSION, encoding="utf-8")
    metadata = place / "weekday_words-1.0.dist-info"
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: weekday-words\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    (tmp_path / "days.txt").write_text("monday 3\ntuesday 2\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    return tmp_path


def options(package: Path, reader: str = "days") -> Recipe:
    days = package / "days.txt"
    words = LexiconOptions(lexicon=f"{reader}:{days}")
    return Recipe(words=words, top_words=0, background=f"days:{days} times unigram")


def test_its_background_and_reader_make_a_prior_that_others_can_load(
    package: Path, root: Path, beside_fairseq: Shell
) -> None:
    made = build_prior([*SPECIALS, *WORDS], options(package))
    assert "Time:Day" in made.output.features.names and "weighted_days" in made.names
    bound = made.background().bind()
    weights = bound.view(bound.start(1)).log_weights[0].exp()
    monday, rain = (made.symbols.index(word) for word in ("monday", "rain"))
    assert float(weights[monday] / weights[rain]) == pytest.approx(3.0)
    made.save(package / "prior")
    program = "from fairseq_llrnn import Prior; import sys; print(Prior.load(sys.argv[1]).names[-1])"
    path = f"{package / 'site-packages'}:{root}"
    done = beside_fairseq.run("python", "-c", program, package / "prior", variables={"PYTHONPATH": path})
    assert done.out.strip() in made.names


def test_without_the_package_its_prior_is_refused(package: Path, shell: Shell) -> None:
    build_prior([*SPECIALS, *WORDS], options(package)).save(package / "prior")
    done = shell.run("llrnn", "show", package / "prior", code=2)
    assert "the prior has a part 'weighted_days', expected one of automaton" in done.err


def test_a_package_that_announces_what_it_has_not_is_named(package: Path) -> None:
    with pytest.raises(OptionError, match="weekday_words:nothing: the entry point of its package cannot be imported"):
        build_prior([*SPECIALS, *WORDS], options(package, "broken"))


def test_a_reader_that_no_package_has_is_named(package: Path) -> None:
    with pytest.raises(OptionError, match=r"words.lexicon dys:.*: expected a file, or READER:FILE with one of the "):
        build_prior([*SPECIALS, *WORDS], options(package, "dys"))


def test_a_package_that_raises_when_it_is_imported_is_named(package: Path) -> None:
    (package / "site-packages" / "raising_words.py").write_text("1 / 0\n", encoding="utf-8")
    with pytest.raises(OptionError, match="raising_words:read: .* cannot be imported: ZeroDivisionError: div"):
        build_prior([*SPECIALS, *WORDS], options(package, "raising"))


READERS = {
    "lexicon.add(word, [word[9:]])": r": word 'monday': '' is no feature name",
    "raise DataError(place(path, 7))": ", line 7$",
    "lexicon.add(word, [line.split()[5]])": r": the reader raising raised IndexError: .* \(raising_words.py, line 7\)",
    "open(path + 'x')": r": the reader raising raised FileNotFoundError: .*; expected a lexicon or DataError; ",
    "return lexicon.add": r": the reader raising returned '<bound .*, expected a fairseq_llrnn.extend.Lexicon; c",
    "return None": r": the reader raising returned 'None', expected a fairseq_llrnn.extend.Lexicon",
}


@pytest.mark.parametrize("statement", READERS)
def test_an_error_of_its_reader_is_one_error_with_the_file(package: Path, statement: str) -> None:
    reader = f"""
from fairseq_llrnn.extend import DataError, Lexicon, iter_lines, place
def read(path, lowercase, language):
    lexicon = Lexicon()
    for _, line in iter_lines(path):
        word = line.split()[0]
        {statement}
    return lexicon
"""
    (package / "site-packages" / "raising_words.py").write_text(reader, encoding="utf-8")
    sys.modules.pop("raising_words", None)
    file = re.escape(str(package / "days.txt"))
    with pytest.raises(DataError, match=f"^{file}{READERS[statement]}"):
        build_prior([*SPECIALS, *WORDS], options(package, "raising"))


def test_the_reader_of_the_page_names_a_line_and_lowers_turkish(tmp_path: Path, root: Path) -> None:
    page = (root / "docs" / "guides" / "extending.md").read_text(encoding="utf-8")
    module: dict[str, Any] = {}
    exec(page.split("word_tags.py <<'EOF'\n")[1].split("\nEOF\n")[0], module)
    (tmp_path / "tags.txt").write_text("KIZIM|a\n", encoding="utf-8")
    for language, word in ((None, "kizim"), ("tr", "kızım")):
        assert [*module["read_tags"](tmp_path / "tags.txt", lowercase=True, language=language)] == [word]
    (tmp_path / "tags.txt").write_text("KIZIM|a\nbad\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"tags.txt, line 2: expected word\|tag"):
        module["read_tags"](tmp_path / "tags.txt", lowercase=True, language=None)


def test_its_source_of_classes_is_trained_and_sums_to_one(
    package: Path, root: Path, beside_fairseq: Shell
) -> None:
    from weekday_words import NextDays  # type: ignore[import-not-found]

    made = build_prior([*SPECIALS, *WORDS], options(package))
    days = np.array([made.symbols.index(day) for day in ("monday", "tuesday")])
    made.with_part(NextDays(days)).save(package / "prior")
    path = f"{package / 'site-packages'}:{root}"
    done = beside_fairseq.run("python", "-c", TRAINING, package / "prior", variables={"PYTHONPATH": path})
    assert done.out.split() == ["True"] * 5


def test_its_options_are_those_of_all_models(package: Path, beside_fairseq: Shell) -> None:
    done = beside_fairseq.run("python", "-c", OPTIONS, variables={"PYTHONPATH": str(package / "site-packages")})
    assert done.out.split() == ["1.0", "0.5", "{}", "0.5"]


def test_its_options_are_those_of_all_tasks(package: Path, root: Path, world: World, beside_fairseq: Shell) -> None:
    path = f"{package / 'site-packages'}:{root / 'tests' / 'support'}"
    args = (*world.train_args(), "--skip-sentences", "5")
    done = beside_fairseq.run("python", "-c", TASK_OPTIONS, *args, variables={"PYTHONPATH": path})
    known, training, other = done.out.split()
    assert known == "True" and int(training) == int(other) - 5


def test_its_cell_is_one_of_networks(package: Path, root: Path, beside_fairseq: Shell) -> None:
    path = f"{package / 'site-packages'}:{root}"
    done = beside_fairseq.run("python", "-c", CELLS, variables={"PYTHONPATH": path})
    assert done.out.split() == ["True"] * 3


def test_its_cell_is_one_of_the_option(package: Path, beside_fairseq: Shell) -> None:
    done = beside_fairseq.run("python", "-c", CELL_OPTION, variables={"PYTHONPATH": str(package / "site-packages")})
    assert done.out.split() == ["True"] * 2


def test_a_background_without_a_source_is_named_alone(package: Path) -> None:
    symbols = [*SPECIALS, *WORDS]
    for text in ("next_days", "next_days()"):
        assert build_prior(symbols, replace(options(package), background=text)).names == ["next_days"]
    with pytest.raises(OptionError, match=r"next_days changes the background below it .*; give it alone, over"):
        build_prior(symbols, replace(options(package), background="uniform times next_days"))
    with pytest.raises(OptionError, match=r"--background days: expected a value after the name, found none"):
        build_prior(symbols, replace(options(package), background="days"))
