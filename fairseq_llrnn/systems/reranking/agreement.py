"""Count errors of gender and number agreement between neighbours, with a lexicon and without a parser.

**Words.** A word that the lexicon lists as a determiner (UPOS DET) is a determiner, even if it has other readings
(*la*, *un*, *ce*), except if it may be a preposition (*d'*). Otherwise it is a noun (NOUN), an adjective (ADJ, or a
past participle, `VerbForm=Part` without `Tense=Pres`), or both, if it has no other reading. A word that may also be a
finite verb, adverb, preposition … (*porte*, *bien*, *sur*) is skipped. Proper names (PROPN), foreign words (X) and
numerals (NUM) do not count as readings.

**Pairs.** Two adjacent words that may be determiner + noun, determiner + adjective, adjective + noun, or noun +
adjective. They disagree in gender (or number) if, in each of these readings, both have a gender and none in common. A
word without a gender (*l'*, *des*) agrees with all. A pair that disagrees in both counts as one wrong pair.

**Rate.** Wrong pairs per 1,000 words (without punctuation). It is a lower bound, because words may be apart (*la fille
… est assis*). It has false alarms: neighbours that do not belong together (*équipe de football américaine*), and forms
missing in the lexicon. Both affect the reference equally, so compare with the reference's own rate.

A lexicon from a treebank has errors. If all rows of a word have counts, readings with less than 2 % of its occurrences
are dropped (*homme*, plural, 1 of 164). Guessed rows are not used.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from fairseq_llrnn.files.text_lines import ReadCount
from fairseq_llrnn.lexicon.lexicon_table import Row
from fairseq_llrnn.lexicon.merge_sources import gather
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.systems.reranking.texts import has_letters

RARE = 0.02
SLIPS = "of less than 2 % of a form's occurrences"
DETERMINER, NOUN, ADJECTIVE = "determiner", "noun", "adjective"
PAIRS = frozenset({(DETERMINER, NOUN), (DETERMINER, ADJECTIVE), (ADJECTIVE, NOUN), (NOUN, ADJECTIVE)})
IGNORED = frozenset({"POS:PROPN", "POS:X", "POS:NUM"})
CATEGORIES = ("Gender", "Number")

Values = tuple[frozenset[str], ...]  # the possible genders and numbers of a word, each empty for "any"
Roles = Mapping[str, Values]  # DETERMINER, NOUN, ADJECTIVE -> values; empty for a skipped word


@dataclass
class Agreement:
    """Counts over a text. `examples` are the wrong pairs."""

    words: int = 0
    pairs: int = 0
    gender: int = 0
    number: int = 0
    examples: Counter[str] = field(default_factory=Counter)

    @property
    def wrong(self) -> int:
        """Return the number of pairs that disagree in gender or number."""
        return self.examples.total()

    @property
    def per_thousand(self) -> float:
        """Return wrong pairs per 1,000 words, 0 for a text without words."""
        return 1000 * self.wrong / max(1, self.words)


def read_roles(path: str) -> dict[str, Roles]:
    """Return the roles of each form of a lexicon or a table of `llrnn lexicon`. Raises DataError."""
    rows: defaultdict[str, list[tuple[Row, int]]] = defaultdict(list)
    table = gather(LexiconOptions(lexicon=path, keep_case=True)).rows
    for row, count in table.items():
        if not row.guessed:
            rows[row.form].append((row, count))
    used_rows = {form: _without_slips(of_form) for form, of_form in rows.items()}
    listed, read = sum(map(len, rows.values())), sum(map(len, used_rows.values()))
    if read < len(table):
        left_out = Counter({SLIPS: listed - read, "guessed": len(table) - listed})
        ReadCount(path, "analyses", entries=len(table), read=read, left_out=left_out).done()
    return {form: _roles(of_form) for form, of_form in used_rows.items()}


def count_errors(sentences: Iterable[Sequence[str]], roles: Mapping[str, Roles]) -> Agreement:
    """Count disagreeing neighbours in tokenised sentences. A word missing in `roles` is looked up in lower case."""
    counts = Agreement()
    for sentence in sentences:
        counts.words += sum(map(has_letters, sentence))
        for (left, left_roles), (right, right_roles) in pairwise((w, _sought(w, roles)) for w in sentence):
            readings = [(left_roles[a], right_roles[b]) for a, b in product(left_roles, right_roles) if (a, b) in PAIRS]
            if not readings:
                continue
            counts.pairs += 1
            gender, number = (
                all(a[i] and b[i] and a[i].isdisjoint(b[i]) for a, b in readings) for i in range(len(CATEGORIES))
            )
            counts.gender += gender
            counts.number += number
            if gender or number:
                counts.examples[f"{left} {right}"] += 1
    return counts


def _sought(word: str, roles: Mapping[str, Roles]) -> Roles:
    word = word.replace("’", "'")
    return roles.get(word) or roles.get(word.lower()) or {}


def _without_slips(rows: list[tuple[Row, int]]) -> list[Row]:
    least = RARE * sum(count for _, count in rows) if all(count for _, count in rows) else 0
    return [row for row, count in rows if count >= least]


def _roles(rows: Iterable[Row]) -> Roles:
    """Return the roles of a form, by the UD names of its rows' features."""
    by_role: defaultdict[str | None, list[set[str]]] = defaultdict(list)
    for names in ({name for name, _ in row.features} for row in rows):
        if IGNORED.isdisjoint(names):
            by_role[_role(names)].append(names)
    if DETERMINER in by_role:
        if any("POS:ADP" in names for names in by_role[None]):
            return {}
        return {DETERMINER: _values(by_role[DETERMINER])}
    if None in by_role:
        return {}
    return {role: _values(of_role) for role, of_role in by_role.items() if role is not None}


def _role(names: Collection[str]) -> str | None:
    if "POS:DET" in names:
        return DETERMINER
    if "POS:NOUN" in names:
        return NOUN
    participle = "VerbForm:Part" in names and "Tense:Pres" not in names
    return ADJECTIVE if "POS:ADJ" in names or participle else None


def _values(readings: Iterable[Iterable[str]]) -> Values:
    """Return the union of values over readings. A reading without values of a category does not make it "any"."""
    names = [name.partition(":") for reading in readings for name in reading]
    return tuple(frozenset(value for group, _, value in names if group == category) for category in CATEGORIES)
