"""Sentences with more evidence than slots: which strings are kept, and one warning with the count of all the others."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from evidence_world import MAPPED, NOT_OFFERED, UNKNOWN, EvidenceWorld, source_of
from shell import Shell, run_script, script
from tiny_world import EVERY_SENTENCE

SEARCH = ["--max-slots", 1, "--max-len-b", 14, "--num-workers", 0]


def offered(source: str) -> dict[str, tuple[bool, bool, bool, int]]:
    """The strings that a source offers: of two of them, the one with the smaller value is rather kept."""
    copies = {*UNKNOWN, source_of(NOT_OFFERED)}  # which is offered as it stands in the source
    words = [word for word in source.split() if word in MAPPED or not word.islower() or word in copies]
    strings = {part: word for word in words for part in MAPPED.get(word, word).split()}
    return {
        part: (word not in MAPPED, not word[0].isdigit(), word.islower(), place)
        for place, (part, word) in enumerate(strings.items())
    }


def without_room(sources: Sequence[str], which: str) -> str:
    """The warning of --max-slots 1. `which`: of the sentences, {} for how many."""
    beyond = [max(0, len(offered(source)) - 1) for source in sources]
    return (
        f"evidence: {sum(beyond)} strings of {which.format(sum(many > 0 for many in beyond))} are left out: a sentence "
        "keeps at most 1, by kind, then by place; raise --max-slots to keep more"
    )


def test_one_slot_is_the_best_one(shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path]) -> None:
    """mapped before numbers before names before copies, and of one kind the first."""
    sources = evidence.text("test", "src")
    of_each = [offered(source) for source in sources]
    kept = [min(strings, key=lambda part: strings[part], default=None) for strings in of_each]
    found = shell.run(
        "fairseq-generate", *evidence.task_args(raw=True), "--path", evidence_models["lstm"], *SEARCH, *EVERY_SENTENCE,
        "--gen-subset", "test", "--nbest", 5, "--max-tokens", 60,
    )  # fmt: skip
    assert found.out.count("are left out") == 1
    assert without_room(sources, f"{{}} of the {len(sources)} test sources") in found.out
    assert [len(some) for some in found.hypotheses().values()] == [5] * len(sources)
    for number, some in found.hypotheses().items():
        for _, words in some:
            assert set(words.split()) & set(UNKNOWN) <= {kept[number]}, (words, kept[number])


def test_training_counts_in_all_of_its_data(shell: Shell, evidence: EvidenceWorld) -> None:
    found = shell.run("fairseq-train", *evidence.train_args(raw=True), "--max-slots", 1, "--max-epoch", 2)
    assert found.out.count("are left out") == 2
    for split in ("train", "valid"):
        sources = evidence.text(split, "src")
        assert without_room(sources, f"{{}} of the {len(sources)} {split} sources") in found.out


@pytest.mark.slow
def test_a_search_over_typed_text_counts_until_its_end(
    evidence: EvidenceWorld, evidence_models: dict[str, Path], tmp_path: Path
) -> None:
    """Each sentence once: two models read them, one at a time. In a process of its own, with an end of its own."""
    sources = evidence.text("test", "src")
    (tmp_path / "typed").write_text("\n".join([*sources, *sources[:3]]) + "\n", encoding="utf-8")
    found = run_script(
        script("fairseq-interactive"), *evidence.task_args(), *SEARCH, "--input", tmp_path / "typed",
        "--path", f"{evidence_models['lstm']}:{evidence_models['transformer']}",
    )  # fmt: skip
    [said] = [line for line in found.err.splitlines() if "are left out" in line]
    assert "WARNING" in said and said.endswith(without_room(list(dict.fromkeys(sources)), "{} different sentences"))
