"""What source tokens become, as tab-separated rows: token, target words (`1,000<TAB>1 000`). Evidence of a user."""

from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.rules import is_token
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.files.text_lines import place, refuse_blank, shown

REPEATED = "repeated"


def read_evidence_map(path: Path | str, form: str | None = None) -> dict[str, tuple[str, ...]]:
    """source token -> target words; a row that repeats an earlier one is left out.

    `form`: of text_lines.py.

    Raises DataError, with file and line, for a row of another shape, an empty side, a source of several tokens, a
    special symbol, a source given twice with different targets, and a file without rows.
    """
    mapping: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    count = ReadCount(path, "rows", form)
    for number, line in count.lines():
        where, cells = place(path, number), line.split("\t")
        if len(cells) != 2:
            raise DataError(
                f"{where}: expected `source token<TAB>target words`, found {len(cells)} columns: {shown(line)}; fix "
                "the row"
            )
        source, target = cells[0].strip(" "), tuple(cells[1].split())
        refuse_blank(source, where, "the source side")
        refuse_blank(cells[1], where, "the target side")
        if source.split() != [source]:
            raise DataError(
                f"{where}: expected one source token, found the blank in {shown(source)}; only single tokens can be "
                "mapped: fix or remove the row"
            )
        for word in (source, *target):
            refuse_blank(word, where, "a word")
            if not is_token(word):
                raise DataError(f"{where}: {word!r} is a special symbol, not a word; fix or remove the row")
        if mapping.setdefault(source, target) != target:
            raise DataError(
                f"{where}: {source!r} was mapped to {' '.join(mapping[source])!r} in line {lines[source]}, found "
                f"{' '.join(target)!r} here; remove one of them"
            )
        if lines.setdefault(source, number) == number:
            count.read += 1
        else:
            count.left_out[REPEATED] += 1
    if not mapping:
        raise DataError(f"{path}: expected rows `source token<TAB>target words`, found none; is it the right file?")
    return mapping
