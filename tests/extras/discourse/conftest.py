"""The tiny text and its data folder, once a session."""

import pytest
from discourse_texts import Llrnn, Texts, tiny_text

from fairseq_llrnn.cli import main as llrnn_main


@pytest.fixture
def llrnn(capsys: pytest.CaptureFixture[str]) -> Llrnn:
    """Run `llrnn arguments…`."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = llrnn_main.main([str(a) for a in arguments])
        return (code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    made = Texts(tmp_path_factory.mktemp("discourse"))
    for seed, (split, paragraphs) in enumerate({"train": 60, "valid": 20, "test": 20}.items()):
        made.file(split).write_text(tiny_text(paragraphs, seed), encoding="utf-8")
    arguments = [f"--{split}={made.file(split)}" for split in ("train", "valid", "test")]
    assert llrnn_main.main(["discourse", *arguments, "--language", "en", "--lower", "--out", str(made.data)]) == 0
    return made
