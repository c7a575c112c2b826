"""A user's own part of a prior, in thirty lines of a --user-dir: saved, loaded, trained beside, and searched with."""

import importlib.util
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from dynamic_prior import by_definition
from shell import Shell, assert_says
from tiny_world import USER_DIR, World, evaluated

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.prior import Prior, part
from fairseq_llrnn.registry import load_all
from fairseq_llrnn.testing import check_background

RECENT = '''
"""Words of the last positions get more background."""
import math
from dataclasses import dataclass

import torch

import fairseq_llrnn.plugin
from fairseq_llrnn.backgrounds.background import Background
from fairseq_llrnn.prior import Part, register_part

class RecentWords(Background):
    def __init__(self, below, size, factor):
        super().__init__(below.class_of, below.num_classes)
        self.below, self.size, self.factor = below, size, factor

    def start(self, n):
        return self.class_of.new_full((n, self.size), -1)

    def advance(self, state, tokens):
        return torch.cat([state[:, 1:], tokens.unsqueeze(1)], dim=1)

    def log_weights(self, state):
        weights = self.below.view(self.below.start(1)).log_weights.expand(len(state), -1)
        more = (state >= 0) * math.log(self.factor)
        return weights.scatter_add(1, state.clamp_min(0), more.to(weights.dtype))

@register_part("recent")
@dataclass(frozen=True)
class RecentPart(Part):
    size: int
    factor: float

    def description(self):
        return {"size": self.size, "factor": self.factor}

    @classmethod
    def read(cls, saved):
        size, factor = saved.description["size"], saved.description["factor"]
        if not (isinstance(size, int) and isinstance(factor, float) and size > 0 and factor > 0):
            raise ValueError("recent words: expected a size and a factor above 0")
        return cls(size, factor)

    def background(self, below, context):
        return RecentWords(below, self.size, self.factor)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The user's folder."""
    place = tmp_path / "my_parts"
    place.mkdir()
    (place / "__init__.py").write_text(RECENT, encoding="utf-8")
    return place


@pytest.fixture
def mine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """It as a module, in this process for one test."""
    load_all("parts")  # none of ours is to be known only here
    monkeypatch.setattr(part, "KINDS", part.KINDS.copy())
    spec = importlib.util.spec_from_file_location("recent_words", folder / "__init__.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "recent_words", module)
    spec.loader.exec_module(module)
    return module


def test_it_is_saved_loaded_trained_and_searched(mine: ModuleType, world: World, tmp_path: Path) -> None:
    prior = Prior.load(world.prior("prior")).with_part(mine.RecentPart(2, 5.0))
    prior.save(tmp_path / "prior")
    loaded = Prior.load(tmp_path / "prior")
    assert loaded.names == ["recent"] and loaded.find(mine.RecentPart) == prior.parts[0]
    assert loaded.fingerprint == prior.fingerprint != Prior.load(world.prior("prior")).fingerprint
    background = loaded.background()
    check_background(background)
    background = background.bind()
    chat, lune = loaded.index("chat"), loaded.index("lune")
    state = background.start(1)
    before = background.view(state).log_weights[0]
    for token, times in ((chat, 5.0), (lune, 5.0), (lune, 1.0)):  # of two words that are kept, the first one goes
        state = background.advance(state, torch.tensor([token]))
        assert (background.view(state).log_weights[0] - before)[chat].exp().item() == pytest.approx(times)
    setting = evaluated([*world.train_args(), "--prior", tmp_path / "prior"])
    expected = [loaded.index("le")]
    while len(expected) < 6 and expected[-1:] != [loaded.index("</s>")]:
        expected.append(int(by_definition(setting, expected).argmax()))
    generator = setting.task.build_generator([setting.model], Namespace(beam=1, max_len_b=5, print_alignment=False))
    source = {"src_tokens": torch.tensor([[2, expected[0]]]), "src_lengths": torch.tensor([2])}
    [[best]] = setting.task.inference_step(generator, [setting.model], {"net_input": source, "id": torch.tensor([0])})
    assert best["tokens"].tolist()[:5] == expected[:5]


def test_a_damaged_one_is_refused(mine: ModuleType, world: World, tmp_path: Path) -> None:
    Prior.load(world.prior("prior")).with_part(mine.RecentPart(2, -1.0)).save(tmp_path / "prior")
    with pytest.raises(PriorError, match="recent words: expected a size and a factor above 0; build it again"):
        Prior.load(tmp_path / "prior")


def test_the_commands_find_it_in_a_user_dir(
    mine: ModuleType, folder: Path, shell: Shell, world: World, tmp_path: Path
) -> None:
    Prior.load(world.prior("prior")).with_part(mine.RecentPart(3, 2.0)).save(tmp_path / "prior")
    given = ["--prior", tmp_path / "prior", "--user-dir", folder]
    model = tmp_path / "model"
    shell.run("fairseq-train", *world.train_args(save_dir=model), *given, "--max-update", 4)
    found = shell.run(
        "fairseq-generate", *world.task_args(), *given, "--gen-subset", "test", "--path", model / "checkpoint_last.pt",
        "--beam", 3, "--sample-break-mode", "eos", "--max-len-b", 12,
    )  # fmt: skip
    assert found.out.count("\nH-") >= 16
    without = ["--prior", tmp_path / "prior", "--user-dir", USER_DIR]
    said = shell.run("fairseq-train", *world.train_args(), *without, code=None)
    assert_says(said, "the prior has a part 'recent', expected one of automaton,", "register_part('recent')")
