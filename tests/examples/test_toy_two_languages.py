"""English and French of the bilingual corpus: meanings, inflection, known sentences rendered in both."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from toy_french import closed
from toy_french.bilingual import Agreement, Copy, english
from toy_french.bilingual.facts import agreements, copies
from toy_french.bilingual.glossary import CLOSED, DETERMINERS, EXONYMS, ordinary_glosses
from toy_french.bilingual.rendering import Renderer
from toy_french.bilingual.stock import make_bilingual_stock
from toy_french.trees import Node, tokens
from toy_french.words import Word, adjective, noun, verb


def test_every_word_has_a_meaning_of_its_own() -> None:
    stock = make_bilingual_stock(Random(1))
    for upos in ("NOUN", "ADJ", "VERB"):
        meanings = Counter(lexeme.lemma for (kind, _), lexeme in stock.glosses.items() if kind == upos)
        assert set(meanings.values()) == {1}, meanings.most_common(1)
    lexemes = [lexeme for zipf in stock.french.nouns.values() for lexeme in zipf.items]
    lexemes += [*stock.french.special.values(), *stock.french.adjectives.items, *stock.french.early_adjectives.items]
    lexemes += [lexeme for zipf in stock.french.verbs.values() for lexeme in zipf.items]
    for lexeme in lexemes:
        (upos,) = {word.upos for word in lexeme.forms.values()}
        assert (upos, lexeme.lemma) in stock.glosses
    open_names = {word.form for names in (stock.persons, stock.places) for word in names.open.items}
    unseen_names = {word.form for names in (stock.persons, stock.places) for word in names.unseen}
    assert open_names.isdisjoint(unseen_names) and len(unseen_names) > 150
    assert len(open_names & EXONYMS.keys()) == len(unseen_names & EXONYMS.keys()) == len(EXONYMS) / 2


def test_closed_words_have_a_meaning() -> None:
    words = [*closed.SPEAKER_PRONOUNS, *closed.THIRD_PRONOUNS.values(), *closed.PLACED, *closed.DEGREE]
    words += [*closed.FREQUENCY, *closed.OPENING, closed.OF, closed.TO, closed.IN_YEAR, closed.FOR, closed.AND]
    words += [closed.BUT, closed.THAT, closed.WHO, closed.WHOM, closed.COMMA, closed.STOP]
    assert [word.form for word in words if word.form not in CLOSED] == []
    assert DETERMINERS.keys() == closed.DETERMINERS.keys()


def test_english_inflection() -> None:
    def forms(lexeme: english.Lexeme) -> list[str]:
        return [word.form for word in lexeme.forms.values()]

    assert forms(english.noun("box")) == ["box", "boxes"]
    assert forms(english.noun("story")) == ["story", "stories"] and forms(english.noun("boy")) == ["boy", "boys"]
    assert forms(english.noun("lady neighbour")) == ["lady neighbour", "lady neighbours"]
    assert forms(english.noun("countrywoman")) == ["countrywoman", "countrywomen"]
    assert forms(english.verb("watch")) == ["watch", "watches", "watched", "watched"]
    assert forms(english.verb("carry")) == ["carry", "carries", "carried", "carried"]
    assert forms(english.verb("come home", "came", "come")) == ["come home", "comes home", "came home", "come home"]
    assert forms(english.verb("go", "went", "gone")) == ["go", "goes", "went", "gone"]


LETTER, HOUSE, KING, GIRL, AGE, EURO, PRICE, STATION = (
    noun(lemma, gender)
    for lemma, gender in (
        ("lettre", "Fem"),
        ("maison", "Fem"),
        ("roi", "Masc"),
        ("fille", "Fem"),
        ("an", "Masc"),
        ("euro", "Masc"),
        ("montant", "Masc"),
        ("gare", "Fem"),
    )
)
CLOSE, COST, LOVE, RETURN, SING = (verb(lemma) for lemma in ("fermer", "coûter", "aimer", "retourner", "chanter"))
GREEN, SMALL, FRAGILE = adjective("vert"), adjective("petit"), adjective("fragile")
FEM, MASC, FEMS, MASCS = ("Fem", "Sing"), ("Masc", "Sing"), ("Fem", "Plur"), ("Masc", "Plur")
NEVER = (Node(closed.NOT_FIRST, "advmod"), Node(closed.NOT_SECOND, "advmod"))
OFTEN = Node(closed.FREQUENCY[0], "advmod", [Node(closed.DEGREE[0], "advmod")])  # très souvent
SHE, THEY = Node(closed.THIRD_PRONOUNS[FEM], "nsubj"), Node(closed.THIRD_PRONOUNS[MASCS], "nsubj")


def phrase(word: Word, deprel: str, *right: Node, det: str = "le", left: tuple[Node, ...] = ()) -> Node:
    cell = word.feature("Gender"), word.feature("Number")
    return Node(word, deprel, [Node(closed.DETERMINERS[det][cell], "det"), *left], list(right))


def figure(form: str, deprel: str = "nummod", *left: Node) -> Node:
    return Node(Word(form, form, "NUM", "NumForm=Digit|NumType=Card"), deprel, list(left))


def name(form: str, deprel: str, *cases: Word) -> Node:
    return Node(Word(form, form, "PROPN", "Number=Sing"), deprel, [Node(case, "case") for case in cases])


def dated() -> Node:
    """The sentence in the docstring of the package."""
    relative = Node(CLOSE.forms[FEMS], "acl:relcl", [Node(closed.WHOM, "obj"), phrase(GIRL.forms[FEM], "nsubj")])
    relative.left.append(Node(closed.AVOIR.forms["Pres", "3", "Sing"], "aux:tense"))
    letters = phrase(LETTER.forms[FEMS], "nsubj", Node(FRAGILE.forms[FEMS], "amod"), relative)
    year = figure("1917", "obl", Node(closed.IN_YEAR, "case"))
    euros = Node(EURO.forms[MASCS], "obj", [figure("57.843")])
    root = Node(COST.forms["Pres", "3", "Plur"], "root", [year, Node(closed.COMMA, "punct"), letters])
    root.right = [euros, Node(closed.STOP, "punct")]
    return root


def cases() -> Iterator[tuple[str, str, Node]]:
    """English, French, and the tree of both."""
    pres, past, future = (
        {key: lexeme.forms[tense, "3", "Sing"] for key, lexeme in verbs.items()}
        for tense in ("Pres", "Imp", "Fut")
        for verbs in ({"be": closed.ETRE, "have": closed.AVOIR, "own": closed.HAVE, "close": CLOSE, "love": LOVE},)
    )
    doors = phrase(HOUSE.forms[FEMS], "obj", det="un")
    yield "she closes some houses", "elle ferme des maisons", Node(pres["close"], "root", [SHE], [doors])
    yield "she very often closed", "elle fermait très souvent", Node(past["close"], "root", [SHE], [OFTEN])
    yield (
        "she does not very often close",
        "elle ne ferme pas très souvent",
        Node(pres["close"], "root", [SHE, NEVER[0]], [NEVER[1], OFTEN]),
    )
    yield "she will not close", "elle ne fermera pas", Node(future["close"], "root", [SHE, NEVER[0]], [NEVER[1]])
    inner = Node(CLOSE.forms["Inf",], "xcomp", [], [doors])
    yield "she loves to close some houses", "elle aime fermer des maisons", Node(pres["love"], "root", [SHE], [inner])
    have, been = Node(pres["have"], "aux:tense"), Node(pres["be"], "aux:tense")
    will = Node(future["be"], "cop")
    yield "she has closed", "elle a fermé", Node(CLOSE.forms[MASC], "root", [SHE, have])
    yield (
        "she has not very often returned to London",
        "elle n' est pas très souvent retournée à Londres",
        Node(RETURN.forms[FEM], "root", [SHE, NEVER[0], been, NEVER[1], OFTEN], [name("Londres", "obl", closed.TO)]),
    )
    yield (
        "she will very often be green",
        "elle sera très souvent verte",
        Node(GREEN.forms[FEM], "root", [SHE, will, OFTEN]),
    )
    yield (
        "she will be very green",
        "elle sera très verte",
        Node(GREEN.forms[FEM], "root", [SHE, will, Node(closed.DEGREE[0], "advmod")]),
    )
    old = Node(AGE.forms[MASCS], "obj", [figure("37")])
    yield (
        "she was not 37 years old",
        "elle n' avait pas 37 ans",
        Node(past["own"], "root", [SHE, NEVER[0]], [NEVER[1], old]),
    )
    cop = Node(pres["be"], "cop")
    yield (
        "the amount is 12.50 euros",
        "le montant est de 12,50 euros",
        Node(
            EURO.forms[MASCS],
            "root",
            [phrase(PRICE.forms[MASC], "nsubj"), cop, Node(closed.OF, "case"), figure("12,50")],
        ),
    )
    town = phrase(
        STATION.forms[FEM],
        "nsubj",
        Node(GREEN.forms[FEM], "amod"),
        name("Arles", "nmod", closed.OF),
        det="un",
        left=(Node(SMALL.forms[FEM], "amod"),),
    )
    yield (
        "a small green Arles station sings",
        "une petite gare verte d' Arles chante",
        Node(SING.forms["Pres", "3", "Sing"], "root", [town]),
    )
    month = Node(Word("juillet", "juillet", "NOUN", "Gender=Masc|Number=Sing"), "obl")
    month.left = [Node(closed.DETERMINERS["le"][MASC], "det"), figure("14")]
    month.right = [figure("1789")]
    yield (
        "on July 14 , 1789 , they sang",
        "le 14 juillet 1789 , ils chantaient",
        Node(SING.forms["Imp", "3", "Plur"], "root", [month, Node(closed.COMMA, "punct"), THEY]),
    )
    time = figure("8h30", "obl", Node(closed.TO, "case"))
    green_king = phrase(KING.forms[MASC], "nsubj", det="un", left=(Node(adjective("élégant").forms[MASC], "amod"),))
    yield (
        "at 8:30 , an elegant king sings",
        "à 8h30 , un élégant roi chante",
        Node(SING.forms["Pres", "3", "Sing"], "root", [time, Node(closed.COMMA, "punct"), green_king]),
    )
    docstring = "in 1917 , the fragile letters that the girl has closed cost 57,843 euros ."
    yield docstring, "en 1917 , les lettres fragiles que la fille a fermées coûtent 57.843 euros .", dated()


@pytest.mark.parametrize(("source", "target", "root"), [pytest.param(*case, id=case[0]) for case in cases()])
def test_rendering(source: str, target: str, root: Node) -> None:
    assert " ".join(token.word.form for token in tokens(root)) == target
    assert " ".join(text for text, _ in Renderer(ordinary_glosses()).sentence(root)) == source


def test_facts_of_a_known_sentence() -> None:
    root = dated()
    pieces = Renderer(ordinary_glosses()).sentence(root)
    assert [*copies(pieces, root, tokens(root), {"1917"}, set())] == [
        Copy(1, 1, "number", "1917", "1917", seen=True),
        Copy(12, 12, "number", "57,843", "57.843", seen=False),
    ]
    assert [*agreements(root, {"fermées"})] == [
        Agreement(5, 4, "fragiles", "fragile", "ADJ", "Fem", "Plur", seen=False),
        Agreement(10, 4, "fermées", "fermer", "VERB", "Fem", "Plur", seen=True),
    ]
