"""What examples share: scripts find it wherever they are started, and their users' mistakes are one line."""

from pathlib import Path

import pytest
from example_modules import EXAMPLES, run_example
from example_parts.same_options import FILE, keep_options

from fairseq_llrnn.errors import DataError, OptionError, one_line_errors

SHARING = sorted(
    str(path.relative_to(EXAMPLES))
    for path in EXAMPLES.glob("*/*.py")
    if "from example_parts" in path.read_text(encoding="utf-8") and "__main__" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("script", SHARING)
def test_scripts_find_what_they_share(script: str) -> None:
    assert run_example(script, "--help").out.startswith("usage:")


def test_a_mistake_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    @one_line_errors("x.py")
    def main(error: Exception | None) -> None:
        if error is not None:
            raise error

    assert main(None) == 0
    assert main(DataError("a.txt: expected one, found none")) == 2
    assert main(FileNotFoundError(2, "No such file", "b.txt")) == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err == "x.py: error: a.txt: expected one, found none\nx.py: error: [Errno 2] No such file: 'b.txt'\n"
    with pytest.raises(ZeroDivisionError):
        main(ZeroDivisionError())


def test_results_of_other_options_are_not_taken_for_these(tmp_path: Path) -> None:
    for options in ({"--lr": 0.1, "--size": 4}, {"--lr": 0.1, "--size": 4}, {"--lr": 0.1, "--new": "x"}):
        keep_options(tmp_path, options, has_results=False)
    with pytest.raises(OptionError, match="expected --size 8, found results of --size 4; use another --out, or --s"):
        keep_options(tmp_path, {"--lr": 0.1, "--size": 8}, has_results=True)
    (tmp_path / FILE).write_text("[1", encoding="utf-8")
    with pytest.raises(OptionError, match="options.json: expected options, found something else; use another --out"):
        keep_options(tmp_path, {"--lr": 0.1}, has_results=True)
    (tmp_path / FILE).unlink()
    with pytest.raises(OptionError, match="expected options.json next to the results, found none; use another --out"):
        keep_options(tmp_path, {"--lr": 0.1}, has_results=True)
