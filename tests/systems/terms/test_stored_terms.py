"""Terms on disk: as they were given, each source phrase once, found by keys, and in processes that were forked."""

import os

from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.systems.terms.tsv_file import EntriesByKey, StoredTerms, TermEntry

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)
ENTRIES = st.lists(
    st.builds(
        TermEntry, st.lists(WORDS, max_size=2).map(tuple), WORDS, st.sampled_from([None, "NOUN"]),
        st.lists(WORDS, max_size=2).map(tuple), WORDS, WORDS,
    ), max_size=12,
)  # fmt: skip


@given(ENTRIES)
def test_the_first_entry_of_each_phrase_is_kept(entries: list[TermEntry]) -> None:
    pairs: list[tuple[TermEntry, TermEntry]] = []
    stored = StoredTerms(entries, lambda first, later: pairs.append((first, later)))
    first: dict[tuple[str, ...], TermEntry] = {}
    for entry in entries:
        first.setdefault(entry.source, entry)
    assert list(stored) == [stored[row] for row in range(len(stored))] == stored[:] == list(first.values())
    assert len(pairs) == len(entries) - len(first) and all(first[later.source] == one for one, later in pairs)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=2)))
def test_entries_are_found_by_their_keys(keys: list[list[str]]) -> None:
    by_key = EntriesByKey()
    for row, some in enumerate(keys):
        by_key.add(row, set(some))
    for key in "abcd":
        assert by_key.rows(key) == [row for row, some in enumerate(keys) if key in some]


def test_a_forked_process_reads_them_too() -> None:
    stored = StoredTerms((TermEntry((f"w{i}",), "x") for i in range(100)), lambda *_: None)
    child = os.fork()
    if child == 0:
        os._exit(sum(entry.source == (f"w{i}",) for i, entry in enumerate(stored)))
    assert all(stored[i].source == (f"w{i}",) for i in range(100))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 100
