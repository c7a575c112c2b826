"""Types per 1,000 unknown words: of a text, of samples and of beam search, from what fairseq-interactive prints."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from example_modules import EXAMPLES, load

example, _, _ = load(EXAMPLES / "open_vocabulary", "sampled_words", "open_vocabulary", "open_systems")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "dict.txt").write_text("le 5\nchat 3\ndort 2\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("le zor dort\nle mip\nchat zor\nvrac zor\n", encoding="utf-8")
    return tmp_path


def test_equally_many_words_of_each(place: Path) -> None:
    asked: list[tuple[Sequence[str], str]] = []

    def execute(command: Sequence[str], stdin: str) -> str:
        asked.append((command, stdin))
        if "--sampling" in command:
            return "".join(f"S-{i}\tle\nH-{i}\t-1.0\tle a{i} dort b{i}\nD-{i}\t-1.0\tle\n" for i in range(20))
        return "H-0\t-1.0\tle zi zi\n"

    shown = example.compare(place, place / "model.pt", [place / "test.txt"], 4, execute).splitlines()
    assert shown[2] == "| text | 5 | 600 | zor 3, mip 1, vrac 1 |"
    assert shown[3].startswith("| samples | 5 | 1000 |")
    assert shown[4] == "| beam search, `<unk>` preferred | 2 | 500 | zi 2 |"
    assert len(asked) == 2 and asked[0][1].startswith("le\nle\nchat\nle\n"), "unknown first words are left out"
    assert asked[0][0][asked[0][0].index("--seed") + 1] == "4"
