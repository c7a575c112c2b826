"""Options that fairseq writes as Python are evaluated, and code in them is not run."""


import pytest

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
