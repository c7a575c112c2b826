"""Scripts that take names take them before, between and after their options, as their docstrings write them."""

from pathlib import Path

import pytest
from example_modules import EXAMPLES, load

CASES = {
    "run": ("french_morphology", ("commands",), ("paper-m10", "softmax-stock")),
    "small_treebanks": ("small_treebanks", ("commands",), ("softmax", "gold")),
    "open_vocabulary": ("open_vocabulary", ("--commands",), ("open", "unk")),
}


@pytest.mark.parametrize("script", CASES)
def test_names_may_follow_options(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, begin, names = CASES[script]
    if script == "open_vocabulary":
        pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    (module,) = load(EXAMPLES / folder, script)
    source = "--text" if script == "open_vocabulary" else "--ud"
    for split in ("train", "dev", "test"):
        (tmp_path / f"fr_tiny-ud-{split}.conllu").touch()
    options = (source, str(tmp_path), "--out", str(tmp_path / "out"))
    shown = []
    for order in ((*begin, *names, *options), (*begin, *options, *names), (*begin, names[0], *options, names[1])):
        monkeypatch.setattr("sys.argv", [f"{script}.py", *order])
        assert module.main() == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] and shown[1] == shown[0] == shown[2]
    assert all(f"out/models/{name}" in shown[0] or f"out/{name}/" in shown[0] for name in names)
