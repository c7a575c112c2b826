"""Phrases at the beginning of a sentence that tell how it goes on from the one before (Jernite 2018, Table 5.4).

A phrase counts where a comma follows it; an opening quotation mark or dash may stand before it. The French list has
phrases of the same relations; words are those of Moses' tokeniser (`d' ailleurs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COMMA = ","
OPENING = frozenset(['"', "“", "«", "„", "'", "‘", "—", "–", "-", "--", "``", "''"])

ENGLISH = {
    "addition": "again; also; besides; finally; further; furthermore; moreover; in addition",
    "contrast": "anyway; however; instead; nevertheless; otherwise; contrarily; conversely; nonetheless; in contrast; "
    "rather",
    "time": "meanwhile; next; then; now; thereafter",
    "result": "accordingly; consequently; hence; thus; therefore",
    "specific": "namely; specifically; notably; that is; for example",
    "compare": "likewise; similarly",
    "strengthen": "indeed; in fact",
    "return": "still",
    "recognize": "undoubtedly; certainly",
}
FRENCH = {
    "addition": "de plus; en outre; par ailleurs; d' ailleurs; enfin; également; de surcroît; du reste; au reste; "
    "au surplus; encore",
    "contrast": "cependant; pourtant; toutefois; néanmoins; au contraire; en revanche; par contre; sinon; autrement; "
    "plutôt; inversement; malgré tout",
    "time": "pendant ce temps; en attendant; ensuite; puis; alors; maintenant; désormais; dès lors",
    "result": "ainsi; donc; aussi; par conséquent; en conséquence; c' est pourquoi",
    "specific": "c' est-à-dire; à savoir; notamment; en particulier; par exemple",
    "compare": "de même; pareillement; semblablement",
    "strengthen": "en effet; en fait; de fait; en réalité; à vrai dire; effectivement",
    "return": "tout de même; quand même",
    "recognize": "sans doute; certes; certainement; assurément; évidemment",
}
LANGUAGES = {"en": ENGLISH, "fr": FRENCH}
RELATIONS = tuple(ENGLISH)  # the classes of CONJUNCTION, the same in all languages


class Conjunctions:
    """The phrases of a language."""

    def __init__(self, phrases: Mapping[str, str]) -> None:
        """phrases: of each relation, with semicolons between them."""
        self._relation = {
            tuple(phrase.split()): RELATIONS.index(relation)
            for relation, listed in phrases.items()
            for phrase in listed.split(";")
        }
        self._longest = max(map(len, self._relation))

    def split(self, words: Sequence[str]) -> tuple[int | None, list[str]]:
        """The relation that a sentence's first phrase tells, and the sentence without the phrase and its comma.

        None, and the sentence as it is, where it begins otherwise.
        """
        begin = 1 if words and words[0] in OPENING else 0
        lowered = [word.lower() for word in words[begin : begin + self._longest + 1]]
        for length in range(1, len(lowered)):
            relation = self._relation.get(tuple(lowered[:length]))
            if relation is not None and lowered[length] == COMMA:
                return relation, [*words[:begin], *words[begin + length + 1 :]]
        return None, list(words)
