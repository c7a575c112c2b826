"""Terms beside translations that are slots, through the real commands."""

from pathlib import Path

from evidence_world import EvidenceWorld
from shell import Shell


def test_a_term_that_is_a_translation_is_said_once(shell: Shell, evidence: EvidenceWorld, tmp_path: Path) -> None:
    shell.run(
        "llrnn", "prior", "--dict", evidence.data / "dict.tgt.txt", "--top-words", 10, "--suffixes", 2,
        "--evidence", "terms,numbers,names,copies,translations", "--lexical-translation", evidence.data,
        "--set", "translations.learned=true", "--set", "translations.aligner=ibm1", "--out", tmp_path / "prior",
    )  # fmt: skip
    forms, terms = tmp_path / "forms.tsv", tmp_path / "terms.tsv"
    forms.write_text("chat\tchat\tNOUN\t_\nchats\tchat\tNOUN\t_\n", encoding="utf-8")
    terms.write_text("tahc\tchat\n", encoding="utf-8")
    common = ("--prior", tmp_path / "prior", "--term-forms", forms)
    arguments = evidence.train_args("llrnn_transformer", "lexical", tmp_path / "model", raw=True)
    shell.run("fairseq-train", *arguments, *common, "--invented-terms", 0.5, "--max-epoch", 2)
    found = shell.run(
        "fairseq-interactive", *evidence.task_args(raw=True), *common, "--path",
        tmp_path / "model" / "checkpoint_last.pt", "--terms", terms, "--beam", 3, "--max-len-b", 14,
        "--num-workers", 0, stdin="el tahc tiov 12\nel tiov\n",
    )  # fmt: skip
    with_term, without = found.best().values()
    assert sum(word in ("chat", "chats") for word in with_term.split()) == 1
    assert without
