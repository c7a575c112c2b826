"""Terms over pieces: phrases are found in the words that pieces spell, a form is one token; exact by enumeration."""

import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import torch
from context_class_laws import check_context_classes
from hypothesis import given, settings
from hypothesis import strategies as st
from piece_terms import ENTRIES, FORMS, PIECES, batch, entry, in_pieces, make, of_session, prior_of

from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.counted_slots import CountedSlots
from fairseq_llrnn.evidence.group_slots import requested_groups
from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.evidence.slots import merged_target, slots_of
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.features.dictionary import SPECIALS, plain
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms.tsv_file import TermEntry

EOS, UNK = SPECIALS.index("</s>"), SPECIALS.index("<unk>")


@pytest.fixture(params=list(PIECES))
def prior(request: pytest.FixtureRequest, tmp_path: Path) -> Prior:
    return prior_of(request.param, tmp_path)


def asked(table: PieceTable, source: torch.Tensor) -> list[list[tuple[str, int, tuple[int, ...]]]]:
    found = requested_groups(table.groups, source.numpy())
    return [sorted((one.group.name, one.most, one.places) for one in row) for row in found]


# ---- matching -------------------------------------------------------------------------------------------------------


def slowly(words: Sequence[str], entries: Iterable[TermEntry]) -> list[tuple[str, int, int]]:
    """The longest phrases first, then the first: target, and where the phrase begins and ends among words."""
    every = [
        (len(one.source), -at, one.target)
        for one in entries
        for at in range(len(words))
        if tuple(words[at : at + len(one.source)]) == one.source
    ]
    taken: set[int] = set()
    found = []
    for length, back, target in sorted(every, reverse=True):
        if taken.isdisjoint(range(-back, -back + length)):
            taken.update(range(-back, -back + length))
            found.append((target, -back, -back + length))
    return found


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(list(PIECES)), st.lists(st.sampled_from(["a", "b", "ab", "aba", "Ann"]), max_size=7))
def test_they_are_found_as_in_words(convention: str, words: list[str]) -> None:
    table, terms = make(of_session(convention))
    source = batch(table, terms, [" ".join([*words, "</s>"])])
    spans = table.source_words.spans(plain(source[0].numpy()))
    expected: dict[str, tuple[int, list[int]]] = {}
    for target, begin, end in sorted(slowly(words, ENTRIES), key=lambda one: one[1]):
        many, places = expected.setdefault(target, (0, []))
        places += range(spans[begin][0], spans[end - 1][1])
        expected[target] = many + 1, places
    assert asked(table, source)[0] == sorted((t, many, tuple(places)) for t, (many, places) in expected.items())


def test_lemmas_of_the_source_match(prior: Prior) -> None:
    table, terms = make(prior, entry("ab", "Ann"), source_lemmas={"aba": ["ab"]})
    [[(lemma, many, places)]] = asked(table, batch(table, terms, ["a aba </s>"]))
    assert (lemma, many, len(places)) == ("Ann", 1, len(in_pieces("aba", table.convention.name).split()))


def test_terms_of_a_sentence_are_words(prior: Prior) -> None:
    table, terms = make(prior, entry("b", "ab"))
    found = asked(table, batch(table, terms, ["aba", "a aba </s>"], ["aba => Ann", "ab a"]))
    assert found[0] == [] and [(lemma, many) for lemma, many, _ in found[1]] == [("Ann", 1), ("ab a", 1)]


def test_pieces_in_the_place_of_words_are_refused(prior: Prior) -> None:
    convention = prior.settings["pieces"]
    wrong = "▁ab" if convention == "sentencepiece" else "ab@@"
    message = f"expected words, found pieces: {wrong!r}; write terms as whole words, even if the text is segmented"
    for bad in (entry(wrong, "ab"), entry("a", wrong), entry("a", "ab", f"ab {wrong}")):
        with pytest.raises(DataError) as raised:
            make(prior, bad)
        assert str(raised.value) == f"terms.tsv, line 1: {message}"
    table, terms = make(prior, entry("b", "ab"))
    with pytest.raises(DataError) as raised:
        batch(table, terms, ["a </s>"], [f"a => {wrong}"])
    assert str(raised.value) == f"the column 'a => {wrong}': {message}"


# ---- slots ----------------------------------------------------------------------------------------------------------


def test_a_form_is_one_token_however_many_pieces_it_has(prior: Prior) -> None:
    table, terms = make(prior)
    source = batch(table, terms, ["aba b </s>"])
    slots = slots_of(table, source)
    whole, known = table.convention.whole, prior.symbols
    every = zip(slots.words[0].tolist(), slots.spelling_mask[0].tolist(), strict=True)
    words = {table.target.symbols[word]: word for word, is_spelling in every if not is_spelling}
    assert slots.words[slots.spelling_mask].tolist() == [known.index(whole("ab"))]
    assert set(words) == {*map(whole, FORMS["ab"]), f"{whole('ab')} {whole('Ann')}"}
    assert whole("ab") in known and min(words.values()) >= len(known), "a single piece may be a part of other words"
    assert bool(slots.unknown[slots.exist & ~slots.spelling_mask].all())
    names = prior.output.features.names
    rows = {
        word: {names[f] for f in table.rows[table.groups.groups[0].rows[i]][0]}
        for i, word in enumerate(table.groups.groups[0].words)
    }
    assert all("Evidence:Term" in row for row in rows.values()) and table.groups.groups[0].name == "ab"
    assert all(table.convention.position(whole("ab")) in row for row in rows.values())


def test_targets_are_read_with_forms_as_tokens(prior: Prior) -> None:
    table, terms = make(prior)
    [source] = batch(table, terms, ["aba b </s>"])
    convention = table.convention

    def read(line: str) -> str:
        ids = [table.target.index(piece) for piece in in_pieces(line, convention.name).split()]
        merged = merged_target(table, source, torch.tensor(ids))
        return " ".join(table.target.symbols[token] for token in merged.tolist())

    whole = convention.whole
    assert read("a aba </s>") == f"{whole('a')} {whole('aba')} </s>"
    assert read("ab Ann abb b </s>") == f"{whole('ab')} {whole('Ann')} {whole('abb')} {whole('b')} </s>"
    assert len(read("ab Ann abb b </s>").split()) == 5  # `ab Ann` is one token, with a blank in it


def test_a_piece_that_is_a_form_may_be_a_part_of_other_words(prior: Prior) -> None:
    """`ab` is asked for once; `abn` begins, and `aab` ends with the piece that spells it."""
    table, terms = make(prior)
    pieces = {"sentencepiece": ["▁ab", "▁ab", "n"], "bpe": ["ab", "a@@", "ab"]}[table.convention.name]
    source = batch(table, terms, ["aba </s>"])
    target = merged_target(table, source[0], torch.tensor([*map(table.target.index, pieces), EOS]))
    assert [table.target.symbols[token] for token in target.tolist()] == [*pieces, "</s>"]
    assert (target >= table.target.num_words).tolist() == [True, False, False, False]
    bound = EvidenceBackground(static(prior), table, UNK, UNK).bind(source)
    state = bound.start(1)
    for token in target:
        assert bound.view(state).locate(token.view(1))[1].isfinite().all()
        state = bound.advance(state, token.view(1))


@pytest.mark.parametrize("must", [True, False])
def test_the_laws_of_context_classes_hold(prior: Prior, must: bool) -> None:
    table, terms = make(prior, must=must)
    source = batch(table, terms, ["aba b </s>", "b 12 </s>", "a </s>", "aba aba </s>"])
    bound = EvidenceBackground(static(prior), table, UNK, UNK).bind(source)
    ids = torch.tensor([EOS, *range(4, len(prior.symbols)), *range(len(prior.symbols), len(table.target.symbols))])
    history = ids[torch.randint(len(ids), (4, 4), generator=torch.Generator().manual_seed(2))]
    history[:, 0] = EOS
    assert isinstance(bound, CountedSlots)
    check_context_classes(bound, history)


LENGTH = 2  # both groups are said, and a word of any column follows


def static(prior: Prior) -> StaticBackground:
    class_of = torch.from_numpy(prior.output.class_of.copy())
    return StaticBackground(class_of, prior.output.num_classes, torch.from_numpy(prior.log_weights.copy()))


@pytest.mark.parametrize(("prior", "must"), [("sentencepiece", True), ("bpe", False)], indirect=["prior"])
def test_every_sentence_has_the_probability_of_the_formula(prior: Prior, must: bool) -> None:
    """All sentences of at most two tokens before `</s>`, slowly: ε Σ 1/|g| for forms, until one was said, and b₀."""
    table, terms = make(prior, must=must)
    source = batch(table, terms, ["aba b </s>"])
    bound = EvidenceBackground(static(prior), table, UNK, UNK).bind(source)
    assert isinstance(bound, CountedSlots)
    groups = [set(one.group.words) for one in requested_groups(table.groups, source.numpy())[0]]
    assert sorted(map(len, groups)) == [1, 3]
    slots = set.union(*groups)
    state = bound.start(1)
    columns = list(dict.fromkeys(bound.view(state).columns[0].tolist()))
    assert set(columns) == {*range(len(prior.symbols)), *slots}
    before = {word: math.exp(w) for word, w in enumerate(prior.log_weights.tolist())}

    def weight(word: int, said: tuple[int, ...]) -> float:
        """Of a word after others."""
        of_word = [group for group in groups if word in group]
        full = any(sum(token in group for token in said) >= 1 for group in of_word)
        missing = any(not group & set(said) for group in groups)
        if must and (full or (word == EOS and missing)):
            return 0.0
        own = before.get(word, 0.0) + table.rules.weight * sum(1 / len(group) for group in of_word)
        is_spelling = word == prior.index(table.convention.whole("ab"))  # the piece that spells a form
        return own * (1e-3 if full or is_spelling else 1.0)  # of what may be said, once more

    ended = 0.0
    tokens = torch.tensor(columns)
    for length in range(LENGTH + 1):
        for said in itertools.product(
            [word for word in columns if word != EOS and weight(word, ()) > 0], repeat=length
        ):
            if any(weight(word, said[:i]) == 0 for i, word in enumerate(said)):
                continue
            state = bound.start(1)
            for word in said:
                state = bound.advance(state, torch.tensor([word]))
            weights = [weight(word, said) for word in columns]
            view = bound.view(state)
            mass, (classes, share) = view.class_mass.dense()[0], view.locate(tokens, torch.zeros_like(tokens))
            assert (share + mass[classes]).exp().tolist() == pytest.approx(weights, rel=1e-5)
            assert mass.logsumexp(0).exp().item() == pytest.approx(sum(weights), rel=1e-5)
            if weights[columns.index(EOS)] > 0:
                ended += 1
                assert not must or all(sum(token in group for token in said) == 1 for group in groups)
    assert ended > 0


def test_a_head_reads_words_and_says_forms(prior: Prior) -> None:
    """The Python interface: sources in pieces, terms in words, and behind a tab those of a line."""
    _, terms = make(prior)
    head = LogLinearHead(prior, 3, source_size=2).eval()
    convention = str(prior.settings["pieces"])
    source = head.encode_source([in_pieces("aba b", convention), in_pieces("a", convention) + "\ta => Ann"], terms)
    bound = head.background.bind(source)
    assert bound.steps_to_end(bound.start(2)).tolist() == [3, 2]
    targets = head.encode([in_pieces("abb a ab Ann", convention), in_pieces("Anna", convention)], source)
    whole = CONVENTIONS[convention].whole
    assert head.decode(targets) == [f"{whole('abb')} {whole('a')} {whole('ab')} {whole('Ann')}", whole("Anna")]
    assert targets.shape == (2, 4)
    hidden, states = torch.randn(2, 4, 3), torch.randn(*source.shape, 2)
    assert head.loss(hidden, targets, source=source, source_states=states).isfinite()
