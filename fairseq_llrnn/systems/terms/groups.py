"""Terms as groups of evidence strings (evidence/group_slots.py), with the tokens and input ids of their forms.

With a vocabulary of pieces, each form is one token appended to the dictionary: it is a whole word, which no other word
continues, so the decoder can recognise it as the required form. If a single piece spells the form, that piece is an
additional slot. It adds no probability of its own and keeps a thousandth of its weight (evidence/counted_slots.py).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from fairseq_llrnn.evidence.evidence_table import EvidenceTable, Group
from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.systems.terms.evidence import FEATURE
from fairseq_llrnn.systems.terms.phrases import has_case_or_gender, head_of

MOST_FORMS = 64  # of a group; further forms are dropped
NOUNS = frozenset(("POS:NOUN", "POS:PROPN"))
MODIFIERS = frozenset(("POS:ADJ", "POS:DET", "POS:NUM"))
ADPOSITIONS = frozenset(("POS:ADP",))
LEAST_GUESS = 0.5  # least value of a guessed part of speech
# words that the rest of a sentence needs even if the required phrase contains them
FUNCTION_WORDS = frozenset(f"POS:{tag}" for tag in ("ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "SCONJ"))


class TermGroups:
    """Groups of forms in the evidence table of a session, by number."""

    def __init__(self, table: EvidenceTable) -> None:
        self.table, self._in_pieces = table, table.target_words.convention is not None
        self._number_of: dict[tuple[str, tuple[str, ...], bool], int] = {}

    def number(self, lemma: str, forms: Mapping[str, Mapping[str, float]], must: bool) -> int:
        """Return the number of a group, creating it if needed.

        Args:
            forms: string -> features in addition to those derived from its spelling.
            must: whether one of the forms is required.
        """
        key = lemma, tuple(forms), must
        if key not in self._number_of:
            group_forms = dict(list(forms.items())[:MOST_FORMS])
            self._number_of[key] = self.table.groups.add(
                Group(
                    lemma,
                    tuple(map(self._token, group_forms)),
                    tuple(self._row(form, extra_features) for form, extra_features in group_forms.items()),
                    tuple(map(self._input_id, group_forms)),
                    must,
                    tuple(self._spelling_tokens(list(group_forms), must)),
                )
            )
        return self._number_of[key]

    def _token(self, form: str) -> int:
        """Return the id of a form as one token; with pieces always one after the dictionary's."""
        target, written = self.table.target, self.table.token_string(form)
        return target.open(written) if self._in_pieces else target.index(written)

    def _row(self, form: str, extra_features: Mapping[str, float]) -> int:
        """Return the feature row of a form: `extra_features`, and the features of its words or of their spelling."""
        features: dict[str, float] = {FEATURE: 1.0}
        for word in form.split():
            target = self.table.target.word_index.get(self.table.token_string(word))
            features |= self.table.unknown_features(word) if target is None else self._features(target)
        return self.table.row_with({**extra_features, **features})

    def _input_id(self, form: str) -> int:
        """Return the input id of a form: its word, or for a phrase its head, else its last word of the dictionary.

        With pieces it is `<unk>`, even if a single piece spells the form, because the next piece could continue that
        one.
        """
        index = self.table.target.word_index
        word_ids = [None if self._in_pieces else index.get(word) for word in form.split()]
        in_dictionary = {place: word for place, word in enumerate(word_ids) if word is not None}
        if len(in_dictionary) < 2:
            return next(iter(in_dictionary.values()), index[UNK])
        end = next((place for place, word in in_dictionary.items() if self._is_any(ADPOSITIONS, word)), len(word_ids))
        nouns = [place for place, word in in_dictionary.items() if self._is_any(NOUNS, word)]
        nouns = [place for place in nouns if place < end] or nouns
        modifiers = [place for place in nouns if self._is_any(MODIFIERS, in_dictionary[place])]
        head = head_of(nouns, modifiers, lambda place: has_case_or_gender(self._features(in_dictionary[place])))
        return in_dictionary[max(in_dictionary) if head is None else head]

    def _spelling_tokens(self, forms: Sequence[str], must: bool) -> list[tuple[int, int]]:
        """Return the tokens that spell forms without the form's own token, with their feature rows.

        With words these are the words that differ among the forms of a required phrase. Function words are excluded,
        because the rest of the sentence needs them. With pieces these are the pieces that spell whole forms.
        """
        index = self.table.target.word_index
        if self._in_pieces:
            words: Iterable[str] = map(self.table.token_string, forms)
        elif must:
            phrases = [form.split() for form in forms if len(form.split()) > 1]
            alike = len({len(phrase) for phrase in phrases}) == 1
            places = [{*place} for place in zip(*phrases, strict=True)] if alike else []
            words = sorted(word for place in places if len(place) > 1 for word in place)
        else:
            words = ()
        tokens = dict.fromkeys(token for word in words if (token := index.get(word)) is not None)
        content = [token for token in tokens if self._in_pieces or not self._is_any(FUNCTION_WORDS, token)]
        return [(token, self.table.row_with(self._features(token))) for token in content]

    def _is_any(self, parts_of_speech: Container[str], token: int) -> bool:
        features = self._features(token).items()
        return any(name in parts_of_speech and value >= LEAST_GUESS for name, value in features)

    def _features(self, token: int) -> dict[str, float]:
        return self.table.output.features_of(token)
