"""A package of other people adds a background and a reader of lexicons by entry points alone (registry.py)."""

from pathlib import Path

import pytest
from shell import Shell, run_script

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.prior import Prior

MODULE = '''
"""Days of the week: their features from a list, and a background that makes them as likely as a list says."""

from dataclasses import dataclass

import numpy as np
import torch

from fairseq_llrnn.backgrounds.static import StaticBackground
from fairseq_llrnn.lexicon.features import Lexicon
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


@register_background("days", example="days:list.txt")
def weighted(source, prior, given):
    weights = dict(line.split() for line in open(source, encoding="utf-8"))
    each = np.log([float(weights.get(word, 1.0)) for word in prior.symbols])
    return WeightedDays(each), {}
'''
ENTRY_POINTS = """
[fairseq_llrnn.parts]
days = weekday_words
[fairseq_llrnn.readers]
days = weekday_words:read_days
broken = weekday_words:nothing
"""
WORDS = ("monday", "tuesday", "rain", "sun")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installed: a module and its metadata in a folder that Python looks into."""
    place = tmp_path / "site-packages"
    (place / "weekday_words-1.0.dist-info").mkdir(parents=True)
    (place / "weekday_words.py").write_text(MODULE, encoding="utf-8")
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


def test_its_background_and_reader_make_a_prior_that_others_can_load(package: Path, root: Path) -> None:
    made = Prior.build([*SPECIALS, *WORDS], options(package))
    assert "Time:Day" in made.output.features.names and "weighted_days" in made.names
    weights = made.background().log_weights(made.background().start(1))[0].exp()
    monday, rain = (made.symbols.index(word) for word in ("monday", "rain"))
    assert float(weights[monday] / weights[rain]) == pytest.approx(3.0)
    made.save(package / "prior")
    program = "from fairseq_llrnn import Prior; import sys; print(Prior.load(sys.argv[1]).names[-1])"
    path = f"{package / 'site-packages'}:{root}"
    done = run_script("python", "-c", program, package / "prior", variables={"PYTHONPATH": path})
    assert done.out.strip() in made.names


def test_without_the_package_its_prior_is_refused(package: Path, root: Path, shell: Shell) -> None:
    Prior.build([*SPECIALS, *WORDS], options(package)).save(package / "prior")
    done = run_script("llrnn", "show", package / "prior", code=2, variables={"PYTHONPATH": str(root)})
    assert "the prior has a part 'weighted_days', expected one of automaton" in done.err


def test_a_package_that_announces_what_it_has_not_is_named(package: Path) -> None:
    with pytest.raises(OptionError, match="weekday_words:nothing: expected what its package announces as an entry"):
        Prior.build([*SPECIALS, *WORDS], options(package, "broken"))
