"""Whatever bytes a file holds, a reader gives a lexicon or a DataError that begins with the path."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lexicons import read_conllu, read_tsv_lexicon

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.features import Lexicon

ROWS = (
    "# text = Le chat dort.\n"
    "1\tLe\tle\tDET\t_\tDefinite=Def|Gender=Masc\t2\tdet\t_\t_\n"
    "2-3\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tchat\tchat\tNOUN\t_\tGender=Masc\t0\troot\t_\t_\n"
    "2.1\tqui\tqui\tPRON\t_\t_\t_\t_\t_\t_\n\n"
    "1\tdort\tdormir\tVERB\t_\t_\t0\troot\t_\t_\n"
)
LEXICON = "form\tlemma\tUPOS\tFEATS\nLe\tle\tDET\tGender=Masc\nchat\tchat\tNOUN\t_\nété\tété\tNOUN\tA=b,c\n"
PIECES = st.sampled_from([bytes([byte]) for byte in b"\t\n\r|=_-.#0\xff"] + [b"", b"  ", b"\xc2\x85"])


@st.composite
def spoilt(draw: st.DrawFn, text: bytes) -> bytes:
    """`text` with a few places overwritten, then perhaps zipped and spoilt again."""
    content = bytearray(text)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        content[start : start + draw(st.integers(0, 3))] = draw(PIECES)
    if draw(st.booleans()):
        content = bytearray(gzip.compress(bytes(content), mtime=0))
        if draw(st.booleans()):
            start = draw(st.integers(2, len(content)))
            content[start : start + draw(st.integers(0, 9))] = draw(st.binary(max_size=5))
    return bytes(content)


@pytest.mark.parametrize("read", [read_conllu, read_tsv_lexicon])
@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=60) | spoilt(ROWS.encode()) | spoilt(LEXICON.encode()), lowercase=st.booleans())
def test_a_lexicon_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, read: Callable[..., Lexicon], content: bytes, lowercase: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(content)
    try:
        assert len(read(path, lowercase=lowercase)) > 0
    except DataError as error:
        assert str(error).startswith(str(path)) and len(str(error)) < 500 + len(str(path))


def test_the_unspoilt_files_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(ROWS, encoding="utf-8")
    assert list(read_conllu(path, lowercase=False)) == ["Le", "chat", "dort"]
    path.write_text(LEXICON, encoding="utf-8")
    assert list(read_tsv_lexicon(path, lowercase=False)) == ["Le", "chat", "été"]
