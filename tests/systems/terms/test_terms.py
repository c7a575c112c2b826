"""Terms in sentences: matching, forms, marks, and the slots that they become; exactly one form of each in a search."""

import itertools
import logging
import math
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
import torch
from context_class_laws import check_context_classes
from few_words import EOS, OUTPUT, PRIOR, RULES, TARGET_WORDS, UNK, base, class_rows
from torch import Tensor

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.counted_slots import CountedSlots
from fairseq_llrnn.evidence.evidence_table import EvidenceTable, slot_features
from fairseq_llrnn.evidence.group_slots import requested_groups
from fairseq_llrnn.evidence.slots import EvidenceMixture, EvidenceSlots, slots_of
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.features.feature_table import FeatureTable, group_equal_rows
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.plugin.data.zero_mass import how_to_fix
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart, evidence_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms.groups import TermGroups
from fairseq_llrnn.systems.terms.phrases import PhraseForms
from fairseq_llrnn.systems.terms.plugin.marked_pairs import RunTerms
from fairseq_llrnn.systems.terms.terms import Terms
from fairseq_llrnn.systems.terms.tsv_file import TermEntry

TERM_RULES = replace(RULES, kinds=("terms", *RULES.kinds))
SLOTTED = OUTPUT.with_names(slot_features(TERM_RULES))
TERM_PRIOR = replace(PRIOR, output=SLOTTED, input=SLOTTED, parts=(EvidencePart(TERM_RULES),))
FORMS = {"chien": ("chien", "chiens", "chienne"), "chat": ("chat", "chats"), "grand": ("grand", "grande")}


def word_forms() -> WordForms:
    forms = WordForms()
    for lemma, some in FORMS.items():
        for form in some:
            forms.add(lemma, form)
    return forms


def entry(source: str, target: str, *forms: str, upos: str | None = None) -> TermEntry:
    return TermEntry(tuple(source.split()), target, upos, forms, "terms.tsv, line 1")


ENTRIES = [entry("dog", "chien"), entry("two dog", "chat"), entry("Ann", "Léa", "Léa")]


def make(*entries: TermEntry, must: bool = True, **options: object) -> tuple[EvidenceTable, Terms]:
    table = evidence_table(replace(TERM_PRIOR))
    return table, Terms(table, word_forms(), entries or ENTRIES, must=must, **options)  # type: ignore[arg-type]


def tokens_of(table: EvidenceTable, line: str) -> list[int]:
    return [UNK if (i := table.source_index(word)) is None else i for word in line.split()]


def batch(table: EvidenceTable, terms: Terms, lines: list[str], cells: dict[int, list[str]] | None = None) -> Tensor:
    rows = [terms.marked(tokens_of(table, line), (cells or {}).get(i, ())) for i, line in enumerate(lines)]
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[1] * (longest - len(row))] for row in rows])


def asked(table: EvidenceTable, source: Tensor) -> list[list[tuple[str, int, tuple[int, ...]]]]:
    found = requested_groups(table.groups, source.numpy())
    return [[(one.group.name, one.most, one.places) for one in row] for row in found]


# ---- matching -------------------------------------------------------------------------------------------------------


def test_groups_are_made_of_terms_that_a_sentence_has() -> None:
    """Not of all that begin with one of its words, which may be very many."""
    table, terms = make(entry("two dog", "chat"), entry("two", "chien"), entry("two two", "grand"))
    assert asked(table, batch(table, terms, ["two dog"])) == [[("chat", 1, (0, 1))]]
    assert len(terms.groups._number_of) == 1
    assert [name for name, _, _ in asked(table, batch(table, terms, ["two dog two"]))[0]] == ["chat", "chien"]
    assert len(terms.groups._number_of) == 2


def test_phrases_are_found_the_longest_first_then_the_first() -> None:
    table, terms = make()
    source = batch(table, terms, ["dog two dog dog </s>", "12 </s>", "Ann dog </s>"])
    assert [sorted(row) for row in asked(table, source)] == [
        [("chat", 1, (1, 2)), ("chien", 2, (0, 3))], [], [("Léa", 1, (0,)), ("chien", 1, (1,))],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("entries", "lemmas", "line", "found"),
    [
        # overlapping matches of a length go from left to right
        (["two dog=chien", "dog 12=chat"], {}, "two dog 12 </s>", [("chien", 1, (0, 1))]),
        # lemmas of the source match, but a word goes before a lemma
        (["dog=chien"], {"two": ["dog"], "dog": ["dog"]}, "12 two </s>", [("chien", 1, (1,))]),
        (["two=chat", "dog=chien"], {"dog": ["two"], "two": ["two"]}, "dog </s>", [("chien", 1, (0,))]),
        (["two 12=chat", "two dog=chien"], {"dog": ["12"], "12": ["12"]}, "two dog </s>", [("chien", 1, (0, 1))]),
        (["ann=Léa"], {}, "Ann </s>", []),  # case counts where the text has capitals: the dictionary has Ann
    ],
)
def test_what_is_found(entries: list[str], lemmas: dict[str, list[str]], line: str, found: list[object]) -> None:
    given = {"source_lemmas": lemmas} if lemmas else {}
    table, terms = make(*(entry(*one.split("=")) for one in entries), **given)
    assert asked(table, batch(table, terms, [line])) == [found]


def test_a_lemma_is_among_its_forms_however_many_there_are(caplog: pytest.LogCaptureFixture) -> None:
    known = WordForms()
    for i in range(70):
        known.add("chien", f"chien{i}")
    table = evidence_table(replace(TERM_PRIOR))
    with caplog.at_level(logging.WARNING):
        terms = Terms(table, known, [entry("dog", "chien")])
    batch(table, terms, ["dog"])
    [group] = table.groups.groups
    assert TARGET_WORDS.index("chien") in group.words and len(group.words) == 64
    assert "1 of 1 targets (chien in terms.tsv, line 1): more than 64 forms are known: some are left" in caplog.text


def test_a_part_of_speech_that_no_form_has_is_named(caplog: pytest.LogCaptureFixture) -> None:
    known = WordForms()
    known.add("porte", "porte", ["POS:NOUN"])
    with caplog.at_level(logging.WARNING):
        Terms(evidence_table(replace(TERM_PRIOR)), known, [entry("door", "porte", upos="VERB")])
    assert (
        "terms: 1 of 1 targets (porte VERB in terms.tsv, line 1): no known form has the given part of "
        "speech: all forms are used; fix the part of speech, or leave it out"
    ) in caplog.text


@pytest.mark.parametrize("other", ["NFC", "NFD"])
def test_terms_are_read_in_the_unicode_forms_of_the_dictionaries(other: str) -> None:
    """From a file or behind a line; `Léa` of the dictionary is in NFC."""
    written = unicodedata.normalize(other, "Léa")
    table, terms = make(entry("dog", written, written), entry(written, "chat"))
    assert asked(table, batch(table, terms, ["a dog"])) == [[("Léa", 1, (1,))]]
    cells = {0: [f"dog => {written}"]}
    assert asked(table, batch(table, terms, ["a dog"], cells)) == [[("Léa", 1, (1,))]]


def test_in_lower_cased_text_a_phrase_matches_in_any_case() -> None:
    prior = replace(TERM_PRIOR, source_symbols=tuple(word.lower() for word in TERM_PRIOR.source_symbols))
    table = evidence_table(prior)
    terms = Terms(table, word_forms(), [entry("Dog", "chien")])
    assert asked(table, batch(table, terms, ["dog </s>"])) == [[("chien", 1, (0,))]]


# ---- terms of one sentence ------------------------------------------------------------------------------------------


def test_a_sentence_has_terms_of_its_own() -> None:
    table, terms = make()
    lines = ["two dog </s>", "two dog </s>", "12 </s>"]
    source = batch(table, terms, lines, {0: ["two => grand", "chat"], 2: ["chien"]})
    assert [sorted(row) for row in asked(table, source)] == [
        [("chat", 1, ()), ("chien", 1, (1,)), ("grand", 1, (0,))], [("chat", 1, (0, 1))], [("chien", 1, ())],
    ]  # fmt: skip


def test_a_term_of_the_sentence_goes_before_one_of_the_run() -> None:
    table, terms = make()
    source = batch(table, terms, ["dog </s>"], {0: ["dog => grand"]})
    assert asked(table, source) == [[("grand", 1, (0,))]]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["=> chien"], "the source side is empty"),
        (["dog =>"], "the target side is empty"),
        (["cat => chat"], "the sentence lacks the phrase 'cat', or a longer term covers it"),
        (["dog => chien", "cat => chien"], "the sentence lacks the phrase 'cat', or a longer term covers it"),
        (["dog => chien", "dog => chat"], "can have one target only"),
        (["</s>"], "'</s>' is a special symbol"),
        (["dog => chien => chat"], "found a second `=>`; expected `term` or `source phrase => term`, optionally"),
        *(([f"dog {arrow} chien"], f"found `{arrow}` instead of `=>`; expected") for arrow in ("->", "→")),
        (["dog => chien |"], "found nothing after the `|`; expected `term` or `source phrase => term`"),
        (["chien | "], "found nothing after the `|`; expected"),
        (["dog => chien,chat"], "expected one target, tokenised as in the text, found 'chien,chat'; write a row"),
        (["dog => chien, chat"], "expected one target, tokenised as in the text, found 'chien,'"),
        (["dog,big => chien"], "expected one source, tokenised as in the text, found 'dog,big'"),
        *(([cell], "with blanks around the bar") for cell in ("dog => chien|NOUN", "dog => chien| NOUN", "chien "
        "|PROPN")),
        (["chien | NOUN | NOUN"], "expected a part of speech, one of ADJ"),
    ],
)
def test_bad_cells_are_refused(cells: list[str], message: str) -> None:
    table, terms = make()
    with pytest.raises(DataError) as raised:
        batch(table, terms, ["dog </s>"], {0: cells})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "phrase",
    [
        "dog | NOUN", "dog | noun", "dog|NOUN", "big dog| ADP", "dog |NOUN", "| NOUN", "dog|Noun", "dog / NOUN",
        "dog / Noun", "dog/NOUN", "dog (noun)", "big dog (Adjective)", "dog ( NOUN )", "dog(verb)", "dog (adv)",
    ],
)  # fmt: skip
def test_a_part_of_speech_in_another_place_is_no_word(phrase: str) -> None:
    _, terms = make()
    message = "the {} {!r} ends in a part of speech; write the part of speech {}"
    with pytest.raises(DataError) as raised:
        terms.marked([EOS], [f"{phrase} => chien"])
    assert message.format("source", phrase, "after the term, with blanks around the bar: `dog => pes | NOUN`") in str(
        raised.value
    )
    for side, one in (("source", entry(phrase, "chien")), ("target", entry("dog", phrase))):
        with pytest.raises(DataError) as raised:
            make(one)
        assert f"terms.tsv, line 1: {message.format(side, phrase, 'in the third column')}" in str(raised.value)


@pytest.mark.parametrize(
    "word",
    [
        "a|x", "spare|part", "a|X", "x|y|z", "|", "NOUN", "||NOUNS", "chien|noun", "a|NOU", "km / h", "and/or",
        "noun/verb", "Nomen/Verb", "TCP / IP", "USB / AUX", "audio/AUX", "(ADP)", "data (ADV)", "(pronoun)", "noun)",
        "f (x)", "(nouns)",
    ],
)  # fmt: skip
def test_words_with_bars_slashes_and_brackets_are_words(word: str) -> None:
    for phrase in (word, f"chien {word}", f"{word} chien"):
        _, terms = make(entry(phrase, "chat"), entry("dog", phrase))
        assert list(terms.forms_of(entry("dog", phrase)))[0] == phrase


@pytest.mark.parametrize("word", ["chien,chat", "chien;chat", "chien,", "un;"])
def test_words_with_commas_between_them_are_no_word(word: str) -> None:
    message = "terms.tsv, line 1: expected one {}, tokenised as in the text, found {!r}; write a row for each"
    for side, one in (("source", entry(word, "chien")), ("target", entry("dog", f"grand {word}"))):
        with pytest.raises(DataError) as raised:
            make(one)
        assert message.format(side, word) in str(raised.value)
    with pytest.raises(DataError, match="the forms of a target in the fourth column of a TSV, separated by [|]"):
        make(replace(entry("dog", "chien"), forms=("chien", word)))
    for fine in ("2,4-D", "1,5", ",", "chien , chat"):
        make(entry(fine, fine))


def test_what_the_dictionary_has_is_a_word() -> None:
    prior = replace(TERM_PRIOR, source_symbols=(*TERM_PRIOR.source_symbols, "dog|NOUN", "|", "NOUN", "(", ")", "noun"))
    rows = [entry("dog|NOUN", "chien"), entry("dog | NOUN", "chat"), entry("dog ( noun )", "chat")]
    terms = Terms(evidence_table(prior), word_forms(), rows)
    assert asked(terms.table, batch(terms.table, terms, ["dog|NOUN </s>"])) == [[("chien", 1, (0,))]]


def test_an_empty_source_has_no_place_for_a_term() -> None:
    table, terms = make()
    with pytest.raises(DataError, match="an empty source cannot have a term"):
        batch(table, terms, ["</s>"], {0: ["chien"]})


def test_terms_stay_with_their_sentence_in_any_order() -> None:
    table, terms = make()
    lines = ["dog 12 Zoé </s>", "two dog </s>", "12 7 </s>", "Ann </s>"]
    source = batch(table, terms, lines, {2: ["chien"]})
    wanted = asked(table, source)
    for order in itertools.permutations(range(4)):
        assert asked(table, source[list(order)]) == [wanted[i] for i in order]


def test_what_the_file_asks_for_is_not_asked_for_again() -> None:
    table, terms = make()
    lines = ["dog 12 </s>", "dog dog </s>", "12 </s>", "dog 12 </s>"]
    source = batch(table, terms, lines, {0: ["chien"], 1: ["chien"], 2: ["chien"], 3: ["chien", "chien"]})
    assert [[(lemma, most) for lemma, most, _ in row] for row in asked(table, source)] == [
        [("chien", 1)], [("chien", 2)], [("chien", 1)], [("chien", 2)],
    ]  # fmt: skip


def test_a_target_of_a_sentence_that_nobody_knows_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    table, terms = make()
    with caplog.at_level(logging.WARNING):
        for cells in (["toutou"], ["toutou"], ["12 => minou"]):
            terms.marked(tokens_of(table, "12 </s>"), cells)
    assert [record.getMessage() for record in caplog.records] == [
        f"terms: the target {target!r} of a single sentence: no forms are known: the term is used in the given form "
        "only; give forms with --term-forms, as in training, or in the fourth column of a TSV"
        for target in ("toutou", "minou")
    ]


def test_a_part_of_speech_may_stand_behind_a_term_and_is_that_of_the_prior_where_forms_have_none() -> None:
    known = WordForms()
    for form in ("porte", "portes", "portons"):
        known.add("porte", form)
    features = {"porte": {"POS:NOUN": 0.5, "POS:VERB": 0.5}, "portes": {"POS:NOUN": 1.0}, "portons": {"POS:VERB": 1.0}}
    table = evidence_table(replace(TERM_PRIOR))
    terms = Terms(table, known, phrases=PhraseForms(known, {}, lambda: features))
    source = torch.tensor([terms.marked(tokens_of(table, "dog </s>"), [cell]) for cell in ("dog => porte | noun",)])
    [[term]] = requested_groups(table.groups, source.numpy())
    assert [table.target.symbols[word] for word in term.group.words] == ["porte", "portes"]


@pytest.mark.parametrize("kind", ["NOUN", "ADJ"])
def test_a_phrase_is_of_the_parts_of_speech_of_its_words(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of which the prior knows those of the lemmas alone: all forms of the phrase are taken."""
    known = WordForms()
    for lemma, singular in (("petite", "Gender:Fem"), ("maison", "Gender:Fem")):
        for form, number in ((lemma, "Number:Sing"), (f"{lemma}s", "Number:Plur")):
            known.add(lemma, form, [number, singular])
    features = {"petite": {"POS:ADJ": 0.9}, "maison": {"POS:NOUN": 1.0}}
    terms = Terms(make()[0], known, phrases=PhraseForms(known, {}, lambda: features))
    with caplog.at_level(logging.WARNING):
        assert forms(terms, entry("house", "petite maison", upos=kind)) == {"petite maison", "petites maisons"}
    assert not caplog.text
    with caplog.at_level(logging.WARNING):
        assert len(forms(terms, entry("house", "petite maison", upos="VERB"))) == 2
    assert "the target 'petite maison VERB' of a single sentence: no known form has the given part of" in caplog.text


@pytest.mark.parametrize(
    ("line", "cells", "warned"),
    [
        ("12 </s>", [], True),
        ("dog 12 </s>", [], False),
        ("dog 12 </s>", ["dog => chien"], False),  # which the file says, too
        ("dog 12 </s>", ["dog => chat"], True),
        ("12 </s>", ["chien"], True),
    ],
)
def test_a_file_that_matches_nothing_is_named_at_the_end(
    line: str, cells: list[str], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    table, terms = make()
    run = RunTerms(lambda: terms, "terms.tsv", 3)
    run.marked(tokens_of(table, line), cells)
    with caplog.at_level(logging.WARNING):
        del run
    message = (
        "--terms terms.tsv: none of the 3 phrases occurs in the 1 sentences; write phrases with the tokens and the "
        "case of the sources"
    )
    assert (message in caplog.text) == warned


# ---- forms ----------------------------------------------------------------------------------------------------------


def forms(terms: Terms, one: TermEntry) -> set[str]:
    return set(terms.forms_of(one))


def test_given_forms_go_before_known_ones() -> None:
    _, terms = make()
    assert forms(terms, entry("dog", "chien")) == {"chien", "chiens", "chienne"}
    assert forms(terms, entry("dog", "chien", "toutou", "gros chien")) == {"toutou", "gros chien"}


def test_the_lemma_is_a_form_of_its_own() -> None:
    known = WordForms()
    known.add("aller", "va")
    terms = Terms(make()[0], known)
    assert forms(terms, entry("go", "aller")) == {"va", "aller"}


def test_a_part_of_speech_chooses_among_forms() -> None:
    known = WordForms()
    for form, upos in (("porte", "NOUN"), ("portes", "NOUN"), ("portons", "VERB")):
        known.add("porte", form, [f"POS:{upos}"])
    terms = Terms(make()[0], known)
    assert forms(terms, entry("door", "porte", upos="NOUN")) == {"porte", "portes"}
    assert forms(terms, entry("door", "porte", upos="ADV")) == {"porte", "portes", "portons"}


def test_a_phrase_whose_agreement_nobody_knows_is_taken_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        _, terms = make(entry("big dog", "grand chien"))
    assert forms(terms, entry("big dog", "grand chien")) == {"grand chien"}
    assert "1 of 1 targets (grand chien in terms.tsv, line 1): no forms are known: the term" in caplog.text


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [
        ("dog", "chien / toutou", "chien / toutou"),
        ("dog", "chien | toutou", "chien | toutou"),
        ("dog / two", "chien", "dog / two"),
        ("dog", "chien/deux", "chien/deux"),
        ("dog", "km/h", ""),
        ("dog", "spare|part", ""),
    ],
)
def test_alternatives_are_said(source: str, target: str, named: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        make(TermEntry(tuple(source.split()), target, where="terms.tsv, line 1"))
    said = [text for text in caplog.messages if "alternatives" in text]
    assert said == [
        f"terms: 1 of 1 targets ({named} in terms.tsv, line 1): expected one term, found possible alternatives: the "
        "text is used unchanged; write targets as forms in the fourth column of a TSV, separated by |, and a row for "
        "each source"
    ] * bool(named)


def test_a_warning_of_many_terms_names_the_first_ones_and_their_lines(caplog: pytest.LogCaptureFixture) -> None:
    rows = [TermEntry((word,), word, where=f"terms.tsv, line {i}") for i, word in enumerate("abcdef", 1)]
    with caplog.at_level(logging.WARNING):
        make(*rows, TermEntry(("dog",), "chien"))
    named = "; ".join(f"{word} in terms.tsv, line {i}" for i, word in enumerate("abcde", 1))
    assert f"terms: 6 of 7 targets ({named}; …): no forms are known" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        make(TermEntry(("dog",), "toutou"))  # of no file
    assert "terms: 1 of 1 targets (toutou): no forms are known" in caplog.text


# ---- slots ----------------------------------------------------------------------------------------------------------


def bound(must: bool = True, kind: str = "static") -> tuple[EvidenceTable, CountedSlots, Tensor]:
    table, terms = make(must=must)
    lines = ["dog 12 Zoé </s>", "two dog Ann </s>", "12 7 </s>", "dog dog </s>", "</s>"]
    source = batch(table, terms, lines, {2: ["chien deux"]})
    made = EvidenceBackground(base(kind), table, UNK, UNK).bind(source)
    assert isinstance(made, CountedSlots)
    return table, made, source


def of_phrases(kind: str) -> tuple[EvidenceTable, CountedSlots]:
    """Sentences with a phrase of two forms; the second one asks for one of its words, too."""
    row = entry("dog", "grand chien", "grand chien", "grands chiens")
    table, terms = make(row, entry("Ann", "chien", "chien"))
    made = EvidenceBackground(base(kind), table, UNK, UNK).bind(batch(table, terms, ["dog 12 </s>", "dog Ann </s>"]))
    assert isinstance(made, CountedSlots)
    return table, made


@pytest.mark.parametrize("kind", ["static", "lexical", "dynamic"])
def test_words_that_would_spell_a_phrase_once_more_are_unlikely(kind: str) -> None:
    table, made = of_phrases(kind)
    strings = ["chien", "chiens", "grand chien", "grands chiens", "12", "</s>", "deux"]
    ids = torch.tensor([table.target.index(string) for string in strings])
    history = ids[torch.randint(len(ids), (2, 4), generator=torch.Generator().manual_seed(3))]
    history[:, 0] = EOS
    check_context_classes(made, history)
    plain_one = EvidenceMixture(made.base, EvidenceSlots(made.slots, UNK, table.rules.weight))
    state, below = made.start(2), plain_one.start(2)
    token = torch.full((2,), table.target.index("chien"))
    kept = (made.view(state).log_weights - plain_one.view(below).log_weights)[:, int(token[0])]
    assert kept.tolist() == pytest.approx([math.log(1e-3), 0.0], abs=1e-4)  # the second sentence requires the word


def test_only_words_of_required_phrases_are_unlikely_and_no_articles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phrase that may be said forbids nothing, and the rest of a sentence needs its function words."""
    monkeypatch.setattr("fairseq_llrnn.systems.terms.groups.FUNCTION_WORDS", frozenset({"POS:Num"}))
    row = entry("dog", "12 chien", "12 chien", "99 chien", "deux chat")
    for must, kept in ((True, ["chat", "chien", "deux"]), (False, [])):
        table, terms = make(row, must=must)
        batch(table, terms, ["dog </s>"])
        (group,) = table.groups.groups
        assert sorted(table.target.symbols[word] for word, _ in group.spellings) == kept


def test_a_network_reads_a_phrase_as_its_head_or_its_last_known_word(monkeypatch: pytest.MonkeyPatch) -> None:
    row = entry("dog", "chien Léa 12", "chien Léa 12", "chat Zoé Bob", "99 chats", "chiens chats", "chien", "chiens")
    for nouns, read in (("POS:N", "chien chat 99 <unk>"), ("POS:Verb", "12 chat 99 <unk>")):
        monkeypatch.setattr("fairseq_llrnn.systems.terms.groups.NOUNS", frozenset([nouns]))
        table, terms = make(row)
        source = batch(table, terms, ["dog 12 </s>", "12 dog </s>"])
        made = EvidenceBackground(base("static"), table, UNK, UNK).bind(source)
        forms = torch.tensor([table.target.index(form) for form in row.forms]).expand(2, -1)
        states, number = made.start(2), torch.tensor([[TARGET_WORDS.index("12")]] * 2)
        words = [table.target.symbols[word] for word in made.to_input_ids(forms, states)[1].tolist()]
        assert words == [*read.split(), "chien", "<unk>"]
        assert made.to_input_ids(number, states).tolist() == [[5], [5]]


@pytest.mark.parametrize(
    ("phrase", "read"),
    [
        ("maison campagne", "maison"),  # as stanice metra
        ("maison de campagne", "maison"),
        ("jeune fille", "fille"),  # an adjective, or a noun
        ("jeune de campagne", "jeune"),
        ("de campagne jeune", "campagne"),
        ("fire truck", "truck"),  # nouns without case and gender
        ("house of cards", "house"),
        ("de jeune", "jeune"),
        ("de", "de"),
    ],
)
def test_a_phrase_is_read_as_the_noun_that_its_words_agree_with(phrase: str, read: str) -> None:
    noun = {"POS:NOUN": 1.0}
    french, of = noun | {"Gender:Fem": 1.0}, {"POS:ADP": 1.0}
    words = {
        "maison": french, "campagne": french, "fille": french, "jeune": french | {"POS:ADJ": 0.75}, "de": of, "of": of,
        "fire": noun, "truck": noun, "house": noun, "cards": noun,
    }  # fmt: skip
    output = group_equal_rows(FeatureTable.from_rows([*class_rows()[:4], *words.values()]))
    symbols = (*TARGET_WORDS[:4], *words)
    table = evidence_table(Prior(symbols, output, output, np.zeros(14), {}, PRIOR.source_symbols, PRIOR.parts))
    group = table.groups.groups[TermGroups(table).number(phrase, {phrase: {}}, True)]
    assert group.input_ids == (symbols.index(read),)


@pytest.mark.parametrize(("guess", "read"), [(0.25, "chien"), (0.5, "chat")])
def test_what_is_hardly_a_noun_by_a_guess_is_none(guess: float, read: str) -> None:
    rows = class_rows()
    rows[TARGET_WORDS.index("chien")] = {"POS:NOUN": 1.0}
    rows[TARGET_WORDS.index("chat")] = {"POS:ADJ": 0.75, "POS:NOUN": guess}
    output = group_equal_rows(FeatureTable.from_rows(rows))
    table = evidence_table(replace(PRIOR, output=output, input=output))
    group = table.groups.groups[TermGroups(table).number("chien chat", {"chien chat": {}}, True)]
    assert group.input_ids == (TARGET_WORDS.index(read),)


@pytest.mark.parametrize("must", [True, False])
@pytest.mark.parametrize("kind", ["static", "lexical", "dynamic"])
def test_the_laws_of_context_classes_hold(kind: str, must: bool) -> None:
    table, made, _ = bound(must, kind)
    strings = ["chien", "chats", "Zoé", "12", "chien deux", "Léa", "</s>", "deux"]
    ids = torch.tensor([table.target.index(string) for string in strings])
    history = ids[torch.randint(len(ids), (5, 4), generator=torch.Generator().manual_seed(3))]
    history[:, 0] = EOS
    check_context_classes(made, history)


def test_evidence_shares_its_weight_and_so_does_each_term() -> None:
    table, made, source = bound()
    slots = slots_of(table, source)
    of_first = {
        table.target.symbols[word]: math.exp(part)
        for word, part in zip(slots.words[0].tolist(), slots.log_part[0].tolist(), strict=True)
        if word >= 0
    }
    assert of_first == pytest.approx({"12": 1 / 2, "Zoé": 1 / 2, **dict.fromkeys(FORMS["chien"], 1 / 3)})


def test_only_a_word_of_the_source_takes_the_weight_of_unk() -> None:
    table, made, source = bound()
    slots = slots_of(table, source)
    assert slots.names_unknown.any(1).tolist() == [True, False, False, False, False]
    assert bool(slots.unknown[3].any())  # chiens is read as <unk>


def test_rows_are_those_of_the_words_and_say_that_they_are_terms() -> None:
    table, _, source = bound()
    names = SLOTTED.features.names
    slots = slots_of(table, source)
    for word, row in zip(slots.words[3].tolist(), slots.row[3].tolist(), strict=True):
        if word < 0:
            continue
        begin, end = slots.row_starts[row : row + 2].tolist()
        own = {names[i] for i in slots.features[begin:end].tolist()}
        assert "Evidence:Term" in own and "NOTTOP" in own
        assert ("POS:N" in own) == (table.target.symbols[word] == "chien")


def ends(made: CountedSlots, table: EvidenceTable, row: int, words: list[str]) -> tuple[bool, bool]:
    """Whether a sentence's hypothesis has a weight, and may end then."""
    state, possible = made.start(5), True
    for word in words:
        token = torch.full((5,), table.target.index(word))
        possible &= not bool(made.view(state).locate(token)[1][row].isneginf())
        state = made.advance(state, token)
    return possible, not bool(made.view(state).locate(torch.full((5,), EOS))[1][row].isneginf())


def test_exactly_one_form_of_each_term_is_said() -> None:
    table, made, _ = bound()
    assert ends(made, table, 0, ["12"]) == (True, False)
    assert ends(made, table, 0, ["chiens", "12"]) == (True, True)
    assert ends(made, table, 0, ["chiens", "chien"]) == (False, True)
    assert ends(made, table, 3, ["chiens"]) == (True, False)  # asked for twice
    assert ends(made, table, 3, ["chiens", "chiens"]) == (True, True)
    assert ends(made, table, 2, ["chien", "deux"]) == (True, False)
    assert ends(made, table, 2, ["chien deux"]) == (True, True)  # one token
    assert ends(made, table, 4, []) == (True, True)


def test_what_to_do_about_a_target_that_lacks_its_term() -> None:
    prior = replace(TERM_PRIOR)
    Terms(evidence_table(prior), word_forms(), must=False)
    assert how_to_fix(prior).startswith("build the prior with a background that covers it")
    Terms(evidence_table(prior), word_forms())
    assert how_to_fix(prior).startswith("if its source requires terms, it may lack one, or have one too often: fix")


def test_a_term_that_may_be_said_need_not_be() -> None:
    table, made, _ = bound(must=False)
    assert ends(made, table, 0, ["12"]) == (True, True) and ends(made, table, 0, ["chien", "chiens"]) == (True, True)


def test_a_string_of_both_kinds_is_one_slot() -> None:
    table, terms = make(entry("12", "12", "12", "99"))
    slots = slots_of(table, batch(table, terms, ["12 7 </s>"]))
    words = [table.target.symbols[word] for word in slots.words[0].tolist()]
    assert sorted(words) == ["12", "7", "99"]
    assert slots.member[0].any(1).tolist() == [word in ("12", "99") for word in words]


def test_a_limit_leaves_room_for_what_is_required() -> None:
    table, made, _ = bound()
    assert made.steps_to_end(made.start(5)).tolist() == [2, 3, 2, 3, 1]
    limited = made.view(made.start(5), remaining=2)
    shares = limited.log_shares
    allowed = {
        table.target.symbols[token]
        for token, share in zip(limited.columns[0].tolist(), shares[0].tolist(), strict=True)
        if share > -math.inf
    }
    assert allowed & set(TARGET_WORDS) - {"chien"} == {"</s>"} - {"</s>"}
    assert {"chien", "chiens", "chienne"} <= allowed
