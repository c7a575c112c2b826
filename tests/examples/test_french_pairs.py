"""Which agreement pairs a tree yields, and which it must not."""

from pathlib import Path

import pytest
from example_modules import load
from french_treebank import DEV, FOLDER, LEXICON, TEST, rows, write_treebank

paradigms, pairs, prepare = load(FOLDER, "paradigms", "pairs", "prepare")


class Known:
    """A vocabulary of all words of the lexicon, in its order, each seen twice."""

    rank = {form: number for number, form in enumerate(LEXICON)}
    train = all = dict.fromkeys(LEXICON, 2)


@pytest.fixture(scope="module")
def ud(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_treebank(tmp_path_factory.mktemp("french") / "ud")


def mine(ud: Path, *trees: str, known: type = Known) -> list:
    path = ud / "mined.conllu"
    path.write_text("".join(map(rows, trees)), encoding="utf-8")
    return list(pairs.mine("here", path, paradigms.read_paradigms(ud / "lexicon.tsv", []), known))


def facts(found: list) -> set[tuple[str, str, str, int]]:
    return {(pair.right, pair.wrong, pair.construction, pair.distance) for pair in found}


def test_the_subject_decides_about_verb_and_participle(ud: Path) -> None:
    found = mine(ud, DEV[0])
    assert facts(found) == {
        ("sont", "est", "verb", 3),
        ("perdues", "perdus", "predicate", 4),
        ("perdues", "perdue", "predicate", 4),
    }
    by_wrong = {pair.wrong: pair for pair in found}
    assert by_wrong["perdus"].kind == "Gender" and by_wrong["perdue"].kind == "Number"
    assert by_wrong["perdus"].prefix == "les lettres de le roi sont"
    assert by_wrong["perdus"].controller == "lettres"
    assert by_wrong["perdus"].attractors == 1  # roi is masculine
    assert by_wrong["perdus"].position == 6
    assert by_wrong["perdus"].rank_right == Known.rank["perdues"]
    assert (by_wrong["perdus"].train_right, by_wrong["perdus"].all_wrong) == (2, 2)


def test_avoir_makes_no_agreement(ud: Path) -> None:
    assert {pair.right for pair in mine(ud, DEV[1])} == set()  # `a` has no plural in the lexicon


def test_an_epicene_adjective_has_no_wrong_gender(ud: Path) -> None:
    assert [(pair.kind, pair.wrong) for pair in mine(ud, DEV[2])] == [("Number", "rouges")]


def test_through_a_relative_pronoun(ud: Path) -> None:
    assert facts(mine(ud, TEST[0])) == {("dorment", "dort", "verb+relative", 1)}


def test_through_coordination(ud: Path) -> None:
    assert facts(mine(ud, TEST[1])) >= {
        ("grande", "grand", "predicate", 1),
        ("blanche", "blanc", "predicate+coordination", 3),
        ("blanche", "blanches", "predicate+coordination", 3),
    }


def test_an_attribute_through_coordination(ud: Path) -> None:
    tree = "la:2:det maison:0:root grande:2:amod et:5:cc blanche:3:conj .:2:punct"
    assert ("blanche", "blanc", "attribute+coordination", 2) in facts(mine(ud, tree))


def test_coordinated_subjects_are_left_out(ud: Path) -> None:
    assert mine(ud, TEST[2]) == []


def test_a_controller_to_the_right_is_left_out(ud: Path) -> None:
    assert mine(ud, "blanche:3:amod la:3:det maison:0:root .:3:punct") == []


def test_gold_features_that_disagree_are_left_out(ud: Path) -> None:
    assert mine(ud, "la:2:det maison:0:root grand:2:amod .:2:punct") == []


def test_wrong_forms_outside_the_dictionary_are_left_out(ud: Path) -> None:
    class Small(Known):
        rank = {form: rank for form, rank in Known.rank.items() if form != "perdus"}

    assert {pair.wrong for pair in mine(ud, DEV[0], known=Small)} == {"est", "perdue"}


def test_slips_of_annotation_license_nothing(tmp_path: Path) -> None:
    lexicon = tmp_path / "lexicon.tsv"
    good = "blanc\tblanc\tADJ\tGender=Masc\t30\nblanche\tblanc\tADJ\tGender=Fem\t30\n"
    for count, expected in ((1, ["blanche"]), (2, [])):
        lexicon.write_text(good + f"blanche\tblanc\tADJ\tGender=Masc\t{count}\n", encoding="utf-8")
        found = paradigms.read_paradigms(lexicon, [])
        assert found.wrong_forms("blanc", "ADJ", "Gender:Masc", "Gender:Fem") == expected


def test_without_a_lexicon_the_treebanks_give_the_forms(ud: Path) -> None:
    found = paradigms.read_paradigms(None, [prepare.treebank(ud, "train")])
    assert found.wrong_forms("perdues", "VERB", "Gender:Fem", "Gender:Masc") == ["perdus"]


@pytest.mark.slow
@pytest.mark.real_data("ud-french-gsd-1.4")
def test_the_french_treebank_has_hundreds_of_far_and_rare_pairs(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "ud-french-gsd-1.4"
    texts = prepare.write_texts(folder, tmp_path)
    ranked = pairs.Counter(word for lines in texts.values() for line in lines for word in line.split())
    prepare.write_lines(tmp_path / "data-bin" / "dict.txt", (f"{w} {n}" for w, n in ranked.most_common()))
    known = pairs.Vocabulary(tmp_path)
    forms = paradigms.read_paradigms(folder / "lexicon.tsv.gz", [])
    found = [
        pair
        for split, text in (("test", "test1"), ("dev", "test2"))
        for pair in pairs.mine(text, prepare.treebank(folder, split), forms, known)
    ]
    far_and_rare = [pair for pair in found if pair.distance >= 4 and min(pair.rank_right, pair.rank_wrong) >= 2500]
    assert len(found) > 4500 and len(far_and_rare) > 230
    for pair in found:
        assert texts[pair.text][pair.sentence].split()[: pair.position] == pair.prefix.split()
        assert texts[pair.text][pair.sentence].split()[pair.position] == pair.right
