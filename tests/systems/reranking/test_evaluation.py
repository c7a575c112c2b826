"""Evaluation of translations: words, scores, tallies, facts, agreement, differences, on sentences counted by hand."""

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.files.text_lines import is_blank
from fairseq_llrnn.lexicon.lexicon_table import Row
from fairseq_llrnn.lexicon.merge_sources import gather
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.systems.reranking.agreement import count_errors, read_roles
from fairseq_llrnn.systems.reranking.metrics import (
    MOST_WORDS,
    corpus_scores,
    most_different,
    pieces,
    sentence_scores,
    shortened,
)
from fairseq_llrnn.systems.reranking.nbest import FORMATS, Hypothesis, NBest, Ranked
from fairseq_llrnn.systems.reranking.tallies import by_facts, by_frequency, by_rule, read_facts
from fairseq_llrnn.systems.reranking.texts import Texts, count_words, occurrences, plain, read_texts, spans, words

LEXICON = """\
form lemma UPOS FEATS count
le le DET Gender=Masc|Number=Sing 900
la le DET Gender=Fem|Number=Sing 900
la la NOUN Gender=Masc|Number=Sing 1
l' le DET Number=Sing 300
les le DET Number=Plur 500
les le PRON Number=Plur 100
des un DET Number=Plur 99
des un DET _ 1
d' de ADP _ 900
d' un DET Number=Plur 90
un un DET Gender=Masc|Number=Sing 100
homme homme NOUN Gender=Masc|Number=Sing 163
homme homme NOUN Gender=Masc|Number=Plur 1
table table NOUN Gender=Fem|Number=Sing 9
tables table NOUN Gender=Fem|Number=Plur 9
eau eau NOUN Gender=Fem|Number=Sing 9
noir noir ADJ Gender=Masc|Number=Sing 20
noir noir NOUN Gender=Masc|Number=Sing 9
noire noir ADJ Gender=Fem|Number=Sing 20
fermées fermer VERB Gender=Fem|Number=Plur|Tense=Past|VerbForm=Part 5
tenant tenir VERB Gender=Masc|Number=Sing|Tense=Pres|VerbForm=Part 5
porte porte NOUN Gender=Fem|Number=Sing 5
porte porter VERB Mood=Ind|Number=Sing|VerbForm=Fin 5
gris gris ADJ Gender=Masc 5
Grenoble Grenoble PROPN _ 5
est être AUX Number=Sing 5
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def split(*lines: str) -> list[list[str]]:
    return [line.split() for line in lines]


# ---- words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("L'été, 57.843 t-shirts QX-417.", "L' été , 57.843 t-shirts QX-417 ."),
        ("L&apos; été , 57.843 t-shirts QX-417 .", "L' été , 57.843 t-shirts QX-417 ."),
        ("«8h30» 8:30, 3/4 ; 12,50€", "« 8h30 » 8:30 , 3/4 ; 12,50 €"),
        ("un <unk> <3", "un <unk> < 3"),
        ("e\u0301te\u0301 l’eau -x- a.b", "e\u0301te\u0301 l’ eau - x - a . b"),
        (" \u00a0\t", ""),
        ("می\u200cخواهم\u200e، \u200b", "می\u200cخواهم ،"),
        ("ක්\u200dෂ Ver\u00adein\u00ad-\u00ad \u200c \u00ad \ufeff12,\u20605", "ක්\u200dෂ Ver\u00adein\u00ad - 12 , 5"),
    ],
)
def test_words(line: str, expected: str) -> None:
    assert words(line) == expected.split()


@given(st.text(alphabet="aÉ7'’.,:-/_ <>«&;\u0301", max_size=20))
def test_words_are_the_visible_part_of_a_line_and_nothing_changes_when_they_are_spaced(line: str) -> None:
    assert "".join(words(line)) == "".join(plain(line).split())
    assert words(" ".join(words(line))) == words(line)


@given(st.text(alphabet="aÉ7'.,-_ <&;\u0301\u00ad\u200b\u200c\u200d\u200e\u2060\ufeff", max_size=20))
def test_no_word_is_without_width_and_places_are_those_of_the_words(line: str) -> None:
    assert not any(map(is_blank, words(line)))
    assert [plain(line)[a:b] for a, b in spans(plain(line))] == words(line)
    assert words(" ".join(words(line))) == words(line)


def test_occurrences() -> None:
    assert occurrences(["a", "b"], "a b a b b".split()) == 2
    assert occurrences(["a"], []) == 0


# ---- tallies --------------------------------------------------------------------------------------------------------


def test_found_words_by_frequency_in_training() -> None:
    reference = split("le le chat voit rien", "le zèbre court")
    outputs = split("le chat le le", "le zèbre zèbre dort")
    counts = Counter(le=101, chat=100, voit=5, rien=2, zèbre=0, court=1)
    tallies = by_frequency(reference, [outputs, reference], counts)
    assert {tally.label: (tally.total, *tally.matches) for tally in tallies} == {
        "0": (1, 1, 1), "1": (1, 0, 1), "2–5": (2, 0, 2), "6–20": (0, 0, 0), "21–100": (1, 1, 1), ">100": (3, 3, 3),
    }  # fmt: skip


def test_the_edges_of_the_frequencies() -> None:
    edges = {0: "0", 1: "1", 2: "2–5", 5: "2–5", 6: "6–20", 20: "6–20", 21: "21–100", 100: "21–100", 101: ">100"}
    for count, label in edges.items():
        assert [tally.label for tally in by_frequency([["x"]], [], {"x": count}) if tally.total] == [label]


EVIDENCE = r"\p{Lu}.*|.*\p{Nd}.*"


def rule(expression: str = EVIDENCE) -> UserPatterns:
    return UserPatterns({"evidence": expression}, "--evidence")


@pytest.mark.parametrize(
    ("expression", "reference", "outputs", "counts"),
    [
        # 37 | 37 37 Londres against Marie 37 5 | 37 Paris
        (EVIDENCE, ["marie a 37 chats", "37 chiens , 37 chats à Londres"], ["Marie a 37 chats 5", "37 chiens à Paris"],
         (4, [5], [2])),
        ("ch.*", ["marie a 37 chats", "37 chiens , 37 chats à Londres"], ["Marie a 37 chats 5", "37 chiens à Paris"],
         (3, [2], [2])),
        # a capital that any first word has makes no name: Marie | 37 | Un against Les | 37 Un | Un
        (EVIDENCE, ["« Les hommes voient Marie", "37 hommes", "Un homme à Un"], ["Marie Les", "37 Un", "Les Un"],
         (3, [4], [2])),
    ],
)  # fmt: skip
def test_words_that_match_a_rule(
    expression: str, reference: list[str], outputs: list[str], counts: tuple[int, list[int], list[int]]
) -> None:
    found = by_rule(split(*reference), [split(*outputs)], rule(expression))
    assert (found.total, found.in_outputs, found.right) == counts


def test_a_rule_that_never_ends() -> None:
    with pytest.raises(OptionError, match=r"^--evidence: pattern 'evidence' .* takes too long"):
        by_rule([["a" * 40 + "b"]], [], rule(r"(a|a)+(a|a)+(a|a)+c"))


def test_facts(tmp_path: Path) -> None:
    lines = [
        {
            "copies": [
                {"kind": "number", "french": "37", "seen": True, "source": 0},
                {"kind": "number", "french": "37", "seen": True},
                {"kind": "name", "french": "Rue Noire", "seen": False},
            ],
            "agreements": [{"form": "belle", "seen": False}],
        },
        {"copies": []},
    ]
    path = write(tmp_path / "facts", "".join(json.dumps(line) + "\n" for line in lines))
    facts = read_facts(str(path), split("37 à 37 Rue Noire belle", "rien"))
    outputs = [split("37 Rue Noire", ""), split("Noire Rue 37 belle 37 37", "37")]
    assert [(tally.label, tally.total, tally.matches) for tally in by_facts(facts, outputs)] == [
        ("agreement, unseen", 1, [0, 1]),
        ("name, unseen", 1, [1, 0]),
        ("number, seen", 2, [1, 2]),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "", "[]", "1", '{"copies": {}}', "{}", '{"copies": [[]]}', '{"copies": [{"kind": "x", "french": "37"}]}',
        '{"copies": [{"kind": "x", "french": 37, "seen": true}]}', '{"copies": [], "agreements": [{"seen": true}]}',
        '{"copies": [{"kind": "x", "french": " ", "seen": true}]}',
        '{"copies": [{"kind": "x", "french": "37", "seen": 1}]}',
        '{"copies": [{"kind": "\\ud800", "french": "37", "seen": true}]}', "[" * 100_000,
    ],
)  # fmt: skip
def test_lines_that_are_no_facts(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "facts", '{"copies": []}\n' + line + "\n")
    with pytest.raises(DataError) as error:
        read_facts(str(path), split("37", "37"))
    assert str(error.value).startswith(f'{path}, line 2: expected {{"copies": [{{"kind": "number", "french": "37", ')
    assert len(str(error.value).partition("; found ")[2]) < 70


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        (["37", "37"], ": expected 2 lines, one for each sentence of the reference, found 1"),
        (["38"], ", line 1: the number '37' is not in line 1 of the reference"),
    ],
)
def test_facts_of_another_text(tmp_path: Path, reference: list[str], says: str) -> None:
    path = write(tmp_path / "facts", '{"copies": [{"kind": "number", "french": "37", "seen": true}]}\n')
    with pytest.raises(DataError) as error:
        read_facts(str(path), split(*reference))
    assert str(error.value) == f"{path}{says}; give the facts of this text"


# ---- agreement ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "pairs", "gender", "number", "wrong"),
    [
        ("la table noire", 2, 0, 0, 0),
        ("le table noire", 2, 1, 0, 1),
        ("La homme", 1, 1, 0, 1),  # la as a noun is a slip of the lexicon, and sought in lower case
        ("l' homme", 1, 0, 0, 0),
        ("les homme", 1, 0, 1, 1),  # homme as a plural is a slip, too
        ("des eau", 1, 0, 1, 1),
        ("d' eau", 0, 0, 0, 0),  # may be a preposition
        ("le tables", 1, 1, 1, 1),  # wrong in both, once
        ("tables noir", 1, 1, 1, 1),
        ("noir table", 1, 1, 0, 1),
        ("table homme", 0, 0, 0, 0),  # two nouns
        ("le porte", 0, 0, 0, 0),  # may be a verb
        ("tables fermées", 1, 0, 0, 0),
        ("homme fermées", 1, 1, 1, 1),
        ("table tenant", 0, 0, 0, 0),  # a present participle does not agree
        ("table gris", 1, 1, 0, 1),
        ("table , noir", 0, 0, 0, 0),  # not side by side
        ("le Grenoble", 0, 0, 0, 0),
        ("table est noir", 0, 0, 0, 0),
        ("l’ inconnu", 0, 0, 0, 0),
    ],
)
def test_errors_of_agreement(tmp_path: Path, sentence: str, pairs: int, gender: int, number: int, wrong: int) -> None:
    roles = read_roles(str(write(tmp_path / "lexicon.tsv", LEXICON.replace(" ", "\t"))))
    found = count_errors([sentence.split()], roles)
    assert (found.pairs, found.gender, found.number, found.wrong) == (pairs, gender, number, wrong)


def test_the_rate_of_errors(tmp_path: Path) -> None:
    rows = [line for line in LEXICON.splitlines() if not line.startswith("form")]
    without_counts = "\n".join("\t".join(row.split()[:4]) for row in rows)
    roles = read_roles(str(write(tmp_path / "lexicon.tsv", without_counts)))
    found = count_errors(split("le table , le table noire .", "la homme", ""), roles)
    assert (found.words, found.pairs, found.wrong) == (7, 4, 3)
    assert found.per_thousand == pytest.approx(1000 * 3 / 7)
    assert found.examples == {"le table": 2, "la homme": 1}
    assert count_errors(split("les homme"), roles).wrong == 0  # without counts, every row is believed
    assert count_errors([], roles).per_thousand == 0


def test_the_roles_of_a_table_are_those_of_its_source(tmp_path: Path) -> None:
    """Whether `llrnn lexicon` wrote one of a lexicon, or not; what is guessed counts for nothing."""
    plain = str(write(tmp_path / "lexicon.tsv", LEXICON.replace(" ", "\t")))
    table = gather(LexiconOptions(lexicon=plain, keep_case=True))
    table.add(Row("zzz", features=(("POS:DET", 1.0),), guessed=True))
    with (tmp_path / "table.tsv").open("w", encoding="utf-8") as file:
        table.write(file)
    assert read_roles(str(tmp_path / "table.tsv")) == read_roles(plain)


# ---- scores and differences -----------------------------------------------------------------------------------------

REFERENCE = [f"la phrase numéro {n} est ici , dans la rue {n % 7}" for n in range(60)]
WORSE = [line.replace("phrase", "ligne") if n % 2 else line for n, line in enumerate(REFERENCE)]


def test_scores_are_sacrebleus() -> None:
    texts = Texts(REFERENCE, REFERENCE, {"worse": WORSE, "same": WORSE, "perfect": REFERENCE})
    metrics = [sacrebleu.metrics.BLEU(force=True), sacrebleu.metrics.CHRF()]
    for found, metric in zip(corpus_scores(texts), metrics, strict=True):
        expected = [metric.corpus_score(lines, [REFERENCE]).score for lines in (WORSE, WORSE, REFERENCE)]
        assert found.scores == pytest.approx(expected)
        first, same, better = found.p_values
        assert first is None and same is None and better is not None and better < 0.01
        assert "bs:1000" in found.signature
    (alone, _) = corpus_scores(Texts(REFERENCE, REFERENCE, {"worse": WORSE}))
    assert alone.scores == [pytest.approx(metrics[0].corpus_score(WORSE, [REFERENCE]).score)]
    assert alone.p_values == [None] and alone.signature == str(metrics[0].get_signature())
    by_sentence = sentence_scores(texts)
    assert by_sentence.shape == (60, 3)
    assert by_sentence[1, 0] == pytest.approx(metrics[1].sentence_score(WORSE[1], [REFERENCE[1]]).score)


def test_the_widest_differences_first() -> None:
    scores = np.array([[50.0, 50.0], [10.0, 90.0], [60.0, 30.0], [20.0, 100.0]])
    assert most_different(scores, 30) == [1, 3, 2]
    assert most_different(scores, 1) == [1]
    assert most_different(np.array([[70.0], [100.0], [3.0]]), 30) == [2, 0]


def test_pieces_unlike_the_reference() -> None:
    assert pieces("L'homme noir est  là !", "l' homme est ici !") == [
        ("L'", True), ("homme", False), (" ", False), ("noir", True), (" ", False), ("est", False), ("  ", False),
        ("là", True), (" ", False), ("!", False),
    ]  # fmt: skip
    assert pieces("", "a") == []
    long = "mot " * 1000
    assert "".join(text for text, _ in pieces(long, long)).count("mot") == MOST_WORDS
    assert shortened(long).count("mot") == MOST_WORDS and shortened(long).endswith(" …")
    assert shortened("l&apos; un") == "l' un"


# ---- files ----------------------------------------------------------------------------------------------------------

GENERATED = "2026 | INFO | log\nS-1\tb\nT-1\tdeux\nH-1\t-0.5\tdeu x\nD-1\t-0.5\tdeux\nP-1\t-1\n" + (
    "S-0\ta\nH-0\t-0.9\tu n\nD-0\t-0.9\tpire\nH-0\t-0.1\tu n\nD-0\t-0.1\tun\n"
)


def test_texts_in_every_form(tmp_path: Path) -> None:
    reference = write(tmp_path / "reference", "un\ndeux\n")
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(b"eins\n\n"))
    generated = write(tmp_path / "generate-test.txt", GENERATED)
    texts = read_texts(str(reference), str(reference), {"a": str(packed), "b": str(generated)})
    assert texts.systems == {"a": ["eins", ""], "b": ["un", "deux"]}
    assert count_words(str(packed)) == {"eins": 1}


def test_terms_behind_a_source_are_no_part_of_it(tmp_path: Path) -> None:
    source = write(tmp_path / "source", "the house\thouse => maison\ttrain\nno term\n")
    lines = write(tmp_path / "lines", "la\tmaison\naucun\n")
    texts = read_texts(str(source), str(lines), {"s": str(lines)})
    assert texts.source == ["the house", "no term"]
    assert texts.reference == texts.systems["s"] == ["la\tmaison", "aucun"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("source", "a\n", "expected 2 lines, as many as {folder}/reference has, found 1; give files of the same"),
        ("system", "a\nb\nc\n", "expected 2 lines, as many as {folder}/reference has, found 3; give files"),
        ("system", "", "expected a sentence a line, found an empty file"),
        ("source", "", "expected a sentence a line, found an empty file"),
        ("reference", "", "expected a sentence a line, found an empty file"),
        ("reference", "\n.\n", "expected a sentence a line, found no word in 2 lines"),
        ("system", "S-1\tx\nH-1\t-1\tx\n", "expected a hypothesis of every sentence from 0 to 1, found none of 0"),
        ("system", "S-0\tx\nH-0\t-1\tx\n", "expected 2 lines, as many as "),
        ("system", "H-0\tx\n", "line 1: expected H-N<TAB>score<TAB>text"),
    ],
)
def test_texts_that_do_not_belong_together(tmp_path: Path, name: str, text: str, says: str) -> None:
    paths = {n: write(tmp_path / n, "un\ndeux\n") for n in ("source", "reference", "system")}
    write(paths[name], text)
    with pytest.raises(DataError) as error:
        read_texts(str(paths["source"]), str(paths["reference"]), {"s": str(paths["system"])})
    assert str(error.value).replace(", line", ": line").startswith(f"{paths[name]}: {says.format(folder=tmp_path)}")


def test_a_reranked_list_is_no_system(tmp_path: Path) -> None:
    best = Hypothesis("un", "un", -1.0)
    ranked = FORMATS["fairseq"].write(NBest(0, "a", raw=["S-0\ta"]), [Ranked(best, {"model": -2.0}, -3.0)])
    lines, system = write(tmp_path / "lines", "un\n"), write(tmp_path / "system", "\n".join(ranked))
    with pytest.raises(DataError) as error:
        read_texts(str(lines), str(lines), {"s": str(system)})
    assert str(error.value) == (
        f"{system}, line 3: expected the output of fairseq-generate, found the reranked list of `llrnn rescore "
        "--nbest-out`; give OUT of `llrnn rescore --out OUT`, the best hypotheses"
    )


def test_a_training_text_without_words(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        count_words(str(write(tmp_path / "train", "\n\n")))
    assert str(error.value) == f"{tmp_path}/train: expected the target text of the training, found no word in it"
