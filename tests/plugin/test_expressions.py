"""Options that fairseq writes as Python are evaluated, and code in them is not run."""

from pathlib import Path

import pytest
import torch
from shell import Shell
from tiny_world import World, read_checkpoint

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.compat.safe_checkpoints import evaluate


@pytest.mark.parametrize(
    "text",
    ["(0.9, 0.98)", "[(512, 10, 5)] + [(512, 3, 2)] * 4", "2 * [True]", "-1", "1e-8", "{'a': [1]}", "None", " 3 / 2 "],
)
def test_values_are_those_of_python(text: str) -> None:
    assert evaluate(text) == eval(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()", "open", "[x for x in (1,)]", "(lambda: 1)()", "1 if True else 2", "''.__class__",
        "[0] * 10**9", "([0] * 10000) * 10000", "1 +", "", "1 / 0", "(" * 500, "1 + 'a'", "f'{open}'",
    ],
)  # fmt: skip
def test_other_python_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="expected numbers, strings, tuples or lists"):
        evaluate(text)


def test_what_is_no_string_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="expected a string, found bool"):
        evaluate(True)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", ["fairseq-eval-lm", "fairseq-generate"])
def test_code_in_the_options_of_a_checkpoint_is_not_run(
    command: str, shell: Shell, world: World, tmp_path: Path
) -> None:
    """A softmax model of fairseq: it would give its adaptive_softmax_cutoff to `eval`."""
    options = world.train_args(save_dir=tmp_path)
    for name, value in (("--arch", "lstm_lm"), ("--criterion", "cross_entropy")):
        options[options.index(name) + 1] = value
    shell.run("fairseq-train", *options, "--max-update", 1)
    state = read_checkpoint(tmp_path / "checkpoint_last.pt")
    model = state["cfg"]["model"]
    model.criterion = "adaptive_loss"
    model.adaptive_softmax_cutoff = f"__import__('os').mkdir({str(tmp_path / 'touched')!r}) or [10]"
    path = tmp_path / "hostile.pt"
    torch.save(state, path)
    result = shell.run(command, *world.task_args(), "--path", path, code=1)
    assert not (tmp_path / "touched").exists()
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("fairseq_llrnn: error: option value \"__import__('os').mkdir(")
    assert "which is not run" in last
