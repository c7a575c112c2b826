"""Every reader counts the entries that it reads and leaves out, with reasons, and the command prints the counts."""

from pathlib import Path

import pytest
from hostile_readers import COUNTED, Reader, readers
from read_counts import called, check_counts, counted, functions_that_read

from fairseq_llrnn import registry
from fairseq_llrnn.cli.main import main
from fairseq_llrnn.files.text_lines import ReadCount

# functions that read files and count nothing, or that no file of the table reaches, and why
OTHERS = {
    "fairseq_llrnn.systems.classification.commands.classify:_counted": "compares labels, and says how many",
    "llrnn_research.rare_words.commands.rare_words.restore:run": "what `rare-words annotate` wrote; an evidence map",
    "fairseq_llrnn.cli.places:_of_stdin": "texts whose lines are answered, each by one",
    "fairseq_llrnn.cli.places:check_text": "opens a text, and reads nothing",
    "fairseq_llrnn.cli.places:text_lines": "texts whose lines are answered, each by one",
    "llrnn_research.discourse.data:load_strings": "what `llrnn discourse` wrote",
    "fairseq_llrnn.comparison.texts:_lines": "a text, all of whose lines are kept",
    "fairseq_llrnn.comparison.texts:write_treebank": "treebanks that are copied line by line",
    "fairseq_llrnn.plugin.compat.interactive_lines:_typed_lines": "texts whose lines are answered, each by one",
    "fairseq_llrnn.plugin.compat.interactive_lines:read": "texts whose lines are answered, each by one",
    "fairseq_llrnn.plugin.compat.interactive_lines:_read_data": "a data set, all of whose lines are read",
    "fairseq_llrnn.prior.recipe_file:kept_recipe": "for show, or to be written again: a damaged one counts as none",
    "fairseq_llrnn.prior.parts.automaton_part:_zero_probability_message": "a line for a message",
    "fairseq_llrnn.huggingface.constructors:from_grammar": "a grammar, or the path of one; tested with the processor",
    "fairseq_llrnn.huggingface.wrapping:token_prior": "texts that the tokenizer splits; tested with the models",
    # what no file of text is; tested where they are
    "fairseq_llrnn.systems.terms.tbx_file:is_xml": "looks at the beginning of a file",
    "fairseq_llrnn.lexicon.languages.language_source:lookup": "a package",
    "fairseq_llrnn.lexicon.readers.apertium:apertium_rows": "a program",
}


@pytest.mark.parametrize("reader", readers(), ids=lambda reader: reader.name)
def test_what_is_read_and_left_out_are_the_entries(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / reader.file
    for sample in reader.samples:
        path.write_bytes(sample)
        with counted() as counts:
            reader.read(path)
        check_counts(counts)
        assert not reader.counts or any(count.entries for count in counts)
    for text, said in reader.counted:
        path.write_text(text, encoding="utf-8")
        with counted() as counts:
            reader.read(path)
        check_counts(counts)
        assert f"{path}: {said}" in [str(count) for count in counts]


def test_no_reader_is_without_its_count(tmp_path: Path) -> None:
    """Every function that reads a file occurs in the table, with an entry for each of its reasons."""
    functions, reasons = functions_that_read(), set[str]()
    with called() as names, counted() as counts:
        for reader in readers():
            for sample in (*reader.samples, *(text.encode() for text, _ in reader.counted)):
                path = tmp_path / reader.file
                path.write_bytes(sample)
                reader.read(path)
    for count in counts:
        reasons.update(reason for reason, some in count.left_out.items() if some)
    systems = registry.PACKAGE / "systems"
    gone = [f"{systems.parent.name}.systems.{name}." for name in registry.OFFERED if not (systems / name).exists()]
    others = {name for name in OTHERS if not name.startswith(tuple(gone))}
    assert not functions.keys() - names - others, "add a sound file to hostile_readers.py"
    assert not others - functions.keys(), others - functions.keys()
    assert not others & names, others & names
    known = {reason for name in functions.keys() - others for reason in functions[name]}
    assert not known - reasons, "add a file with such entries to COUNTED of hostile_readers.py"
    assert gone or COUNTED.keys() <= {reader.name for reader in readers()}


def test_the_command_says_each_count_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, lexicon, out = tmp_path / "text", tmp_path / "words.tsv", tmp_path / "dict.txt"
    text.write_text("le chat\nle chien\n", encoding="utf-8")
    lexicon.write_text("chats\tchat\tNOUN\t_\nle\t_\tDET\t_\nau\t_\t_\t_\n", encoding="utf-8")
    assert main(["dictionary", "--text", str(text), "--lexicon", str(lexicon), "--out", str(out)]) == 0
    assert capsys.readouterr().err == f"note: {lexicon}: 2 of 3 rows read; left out: 1 for words written together\n"


def test_large_numbers_are_parted() -> None:
    count = ReadCount("words.tsv", "rows", None, 1210, 1204)
    count.left_out.update({"without a lemma": 6, "repeated": 0})
    assert str(count) == "words.tsv: 1,204 of 1,210 rows read; left out: 6 without a lemma"
