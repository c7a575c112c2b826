"""What examples share: scripts find it wherever they are started, and their users' mistakes are one line."""

import pytest
from example_modules import EXAMPLES, run_example
from example_parts.command_line import exit_status

from fairseq_llrnn.errors import DataError

SHARING = sorted(
    str(path.relative_to(EXAMPLES))
    for path in EXAMPLES.glob("*/*.py")
    if "from example_parts" in path.read_text(encoding="utf-8") and "__main__" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("script", SHARING)
def test_scripts_find_what_they_share(script: str) -> None:
    assert run_example(script, "--help").out.startswith("usage:")


def test_a_mistake_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(error: Exception) -> int:
        raise error

    assert exit_status("x.py", lambda: 3) == 3
    assert exit_status("x.py", lambda: fails(DataError("a.txt: expected one, found none"))) == 2
    assert exit_status("x.py", lambda: fails(FileNotFoundError(2, "No such file", "b.txt"))) == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err == "x.py: error: a.txt: expected one, found none\nx.py: error: [Errno 2] No such file: 'b.txt'\n"
    with pytest.raises(ZeroDivisionError):
        exit_status("x.py", lambda: 1 // 0)
