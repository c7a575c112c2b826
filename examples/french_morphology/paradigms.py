"""All forms of a word with their features, to find the form that is wrong only in gender or number."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_lines, place
from fairseq_llrnn.lexicon.features import feats_features
from fairseq_llrnn.lexicon.readers.conllu import iter_conllu_words

# AUX and VERB are one word class: treebanks differ over which of the two être and avoir are.
VERBS = {"VERB", "AUX"}
# Parts of speech whose analyses can license a form where an adjective or a verb is expected.
INFLECTED = {"ADJ", "VERB", "AUX", "NOUN", "DET", "PRON"}
# An analysis seen less often than once for twenty of another one of the same form is an annotator's slip
# (the French GSD lexicon has `sont` 1,150 times as plural and once as singular).
SLIP = 20


def word_class(upos: str | None) -> str:
    return "VERB" if upos in VERBS else upos or ""


@dataclass(frozen=True)
class Analysis:
    form: str
    lemma: str
    upos: str
    feats: frozenset[str]
    count: int

    @property
    def verb_form(self) -> str:
        return next((name for name in self.feats if name.startswith("VerbForm:")), "")

    def takes_the_place_of(self, other: "Analysis") -> bool:
        return (word_class(self.upos), self.verb_form) == (word_class(other.upos), other.verb_form)


class Paradigms:
    """All analyses of each form, and all forms of each lemma."""

    def __init__(self, analyses: Iterable[Analysis]) -> None:
        self.of_form: dict[str, list[Analysis]] = defaultdict(list)
        self.of_lemma: dict[tuple[str, str], list[Analysis]] = defaultdict(list)
        for analysis in analyses:
            self.of_form[analysis.form].append(analysis)
        for form, found in self.of_form.items():
            most = max(analysis.count for analysis in found)
            self.of_form[form] = [analysis for analysis in found if analysis.count * SLIP >= most]
            for analysis in self.of_form[form]:
                self.of_lemma[analysis.lemma, word_class(analysis.upos)].append(analysis)

    def licenses(self, form: str, value: str, like: Analysis) -> bool:
        """Return whether some analysis of `form` has `value`, or leaves it open in a position of `like`."""
        group = value.partition(":")[0] + ":"
        for analysis in self.of_form[form]:
            if value in analysis.feats and analysis.upos in INFLECTED:
                return True
            if analysis.takes_the_place_of(like) and not any(name.startswith(group) for name in analysis.feats):
                return True
        return False

    def wrong_forms(self, form: str, upos: str | None, right: str, wrong: str) -> list[str]:
        """Return forms that differ from `form` only by the value `wrong` instead of `right` (Gender:Fem, Gender:Masc),
        frequent first.

        Empty if `form` can also have the value `wrong`. No returned form can have the value `right`.
        """
        found: Counter[str] = Counter()
        for analysis in self.of_form.get(form, ()):
            if word_class(analysis.upos) != word_class(upos) or right not in analysis.feats:
                continue
            if self.licenses(form, wrong, analysis):
                return []
            wanted = analysis.feats - {right} | {wrong}
            for other in self.of_lemma[analysis.lemma, word_class(upos)]:
                if other.feats == wanted and not self.licenses(other.form, right, analysis):
                    found[other.form] += other.count
        return sorted(found, key=lambda other: (-found[other], other))


def read_paradigms(lexicon: Path | None, treebanks: Iterable[Path]) -> Paradigms:
    """Read lexicon.tsv (form, lemma, UPOS, FEATS, count) if there is one, or else the treebanks."""
    counts: Counter[tuple[str, str, str, frozenset[str]]] = Counter()
    for form, lemma, upos, feats, count in _treebank_rows(treebanks) if lexicon is None else _lexicon_rows(lexicon):
        counts[form, lemma.lower(), upos, feats] += count
    return Paradigms(Analysis(*key, count) for key, count in counts.items())


Row = tuple[str, str, str, frozenset[str], int]


def _lexicon_rows(path: Path) -> Iterator[Row]:
    for number, line in iter_lines(path):
        cells = line.split("\t")
        if len(cells) != 5 or not cells[4].isdigit():
            raise DataError(
                f"{place(path, number)}: expected form, lemma, UPOS, FEATS and a count, separated by tabs, "
                f"found {line[:60]!r}"
            )
        form, lemma, upos, feats, count = cells
        if upos != "_":
            try:
                yield form.lower(), lemma, upos, frozenset(feats_features(feats)), int(count)
            except ValueError as error:
                raise DataError(f"{place(path, number)}: {error}") from error


def _treebank_rows(paths: Iterable[Path]) -> Iterator[Row]:
    for path in paths:
        for sentence in iter_conllu_words(path, lowercase=True):
            for token in sentence:
                yield token.form, token.lemma, token.upos or "_", frozenset(token.feats), 1
