"""`build_prior` from objects and files, in Python and without fairseq. test_prior_combined.py compares `llrnn
prior`.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import EvidenceOptions, OpenOptions, Prior, Recipe, TranslationOptions
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.named_backgrounds import _REGISTERED, named_backgrounds
from fairseq_llrnn.prior.part import BuildContext
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart

SYMBOLS = (*SPECIALS, "le", "la", "maison", "chat", "12")
SOURCE = (*SPECIALS, "the", "house", "cat", "12")
COUNTS = np.array([0, 0, 5, 1, 9, 8, 3, 2, 1])
WORDS = {"maison": ["POS:NOUN", "Gender:Fem"], "chat": ["POS:NOUN", "Gender:Masc"]}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {
        "train.fr": "la maison\nle chat\nle 12\n",
        "train.en": "the house\nthe cat\nthe 12\n",
        "dict.fr.txt": "le 9\nla 8\nmaison 3\nchat 2\n12 1\n",
        "dict.en.txt": "the 9\nhouse 3\ncat 2\n12 1\n",
        "weights.tsv": "le\t3\nla\t1\n</s>\t1\nmaison\t1\n",
        "map.tsv": "cat\tchat\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_from_symbols_counts_and_a_dictionary_of_features() -> None:
    prior = build_prior(SYMBOLS, Recipe(counts=COUNTS, words=LexiconOptions(lexicon=WORDS), top_words=2))
    assert prior.symbols == SYMBOLS
    assert prior.output.features.row(int(prior.output.class_of[6])) == {"NOTTOP": 1, "POS:NOUN": 1, "Gender:Fem": 1}
    assert np.exp(prior.log_weights[4]) == pytest.approx(9 / 29)
    lexicon = Lexicon()
    for word, features in WORDS.items():
        lexicon.add(word, features)
    again = build_prior(SYMBOLS, Recipe(counts=COUNTS, words=LexiconOptions(lexicon=lexicon), top_words=2))
    assert again.fingerprint == prior.fingerprint


def test_warnings_are_logged(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")  # fairseq, once a test has imported it, logs more
    (files / "other.txt").write_text("the house sees le chat\n" * 9, encoding="utf-8")
    build_prior(SYMBOLS, Recipe(text=[files / "train.fr"]))
    assert not caplog.messages
    build_prior(SYMBOLS, Recipe(text=[files / "other.txt"]))
    (message,) = caplog.messages
    assert message.startswith("18 of the 45 tokens of") and message.endswith("in its case?")


def test_from_files_alone(files: Path) -> None:
    prior = build_prior(files / "dict.fr.txt", Recipe(top_words=2))
    assert prior.symbols == SYMBOLS and prior.settings["background"] == "unigram" and prior.parts == ()
    ngrams = Recipe(text=files / "train.fr", top_words=2, background="ngram:2")
    prior = build_prior(files / "dict.fr.txt", ngrams)
    assert prior.names == ["automaton"] and prior.expression is None
    assert [source.split()[:2] for source in prior.settings["sources"]] == [["--count-text", "train.fr"]]


def test_a_softmax() -> None:
    prior = build_prior(SYMBOLS, Recipe.softmax())
    assert prior.output.num_classes == len(SYMBOLS)
    assert np.exp(prior.log_weights[[2, 4]]) == pytest.approx(1 / 7)


def parallel(files: Path) -> ParallelText:
    return ParallelText.read(files / "train.en", files / "train.fr", SOURCE, SYMBOLS)


def test_with_everything_that_a_source_says(files: Path, tmp_path: Path) -> None:
    options = Recipe(
        text=[files / "train.fr"],
        top_words=3,
        shapes=True,
        background="0.5 ngram(2, folds=0) plus 0.5 cache:3 with weights learned",
        translations=TranslationOptions(parallel(files), weight=0.25, aligner="ibm1"),
        evidence=EvidenceOptions(("numbers",), {"cat": ["chat"]}, unsupported={"numbers": 0.0}),
        open_vocabulary=OpenOptions(types=1),
    )
    prior = build_prior(files / "dict.fr.txt", options)
    assert prior.names == ["automaton", "cache", "lexical", "open_vocabulary", "evidence"]
    assert str(prior.expression) == (
        "0.75 (0.5 ngram(2, folds=0) plus 0.5 cache:3 with weights learned) plus 0.25 translations"
    )
    assert prior.source_symbols == SOURCE and prior.find(EvidencePart).rules.kinds == ("mapped", "numbers")
    assert prior.find(LexicalPart).learned is False and prior.find(OpenVocabularyPart) is not None
    prior.save(tmp_path / "prior")
    loaded = Prior.load(tmp_path / "prior")
    assert loaded.fingerprint == prior.fingerprint and loaded.expression == prior.expression
    background = loaded.background().bind(torch.tensor([[SOURCE.index("cat"), 2]]))
    weights = background.view(background.start(1)).log_weights[0].exp()
    assert weights[SYMBOLS.index("12")] == 0 < weights[SYMBOLS.index("chat")]


def test_a_text_and_another_one_that_is_no_translation(files: Path) -> None:
    (files / "train.en").write_text("the house\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"train.fr: expected as many lines as in .*train.en, 1, found 3; give a"):
        parallel(files)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (Recipe(background="model:train.fr", top_words=2), "only fairseq reads a trained model; build this"),
        (Recipe(suffixes=0), "suffixes: expected a number of at least 1, found 0"),
        (Recipe(background="ngram:2", top_words=2), "--background ngram:2 needs --count-text, the text"),
        (Recipe(evidence=EvidenceOptions(("mapped",))), "--evidence mapped needs evidence.mapping; add it"),
        (
            Recipe(evidence=EvidenceOptions(("translations",))),
            "--evidence translations needs --lexical-translation; add it",
        ),
        (Recipe(evidence=EvidenceOptions(("patterns",))), "--evidence patterns needs patterns"),
        (Recipe(evidence=EvidenceOptions(("names",), weight=0)), "evidence.weight: expected a number above 0, found 0"),
        (Recipe(evidence=EvidenceOptions(("names",))), "--evidence: expected one other dict"),
    ],
)
def test_options_that_do_not_go_together(
    files: Path, options: Recipe, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    with pytest.raises(OptionError, match=error):
        build_prior(SYMBOLS, options)


@pytest.mark.parametrize(
    ("symbols", "error"),
    [
        ([*SYMBOLS, "le\n"], r"expected words without blanks and line ends, found 'le\\n'; split the text with"),
        ([*SYMBOLS, "le la"], "expected words without blanks and line ends, found 'le la'"),
        ([*SYMBOLS, 5], "expected words without blanks and line ends, found 5"),
        (["le", "la"], "found 'le' 'la'; put <s>, <pad>, </s>, <unk> first, and each word once"),
    ],
)
def test_lists_that_are_no_dictionary(symbols: list[str], error: str) -> None:
    with pytest.raises(DataError, match=error):
        build_prior(symbols, Recipe(top_words="all"))


NO_COUNTS = [-1, np.nan, np.inf, 1e300, 2.0**63, 10**12 + 1, 10**30, "3", 1j, True, None]


@pytest.mark.parametrize("count", NO_COUNTS)
def test_numbers_that_are_no_counts(count: object) -> None:
    counts = np.array([count] * len(SYMBOLS))
    expected = f"expected {len(SYMBOLS)} numbers from 0 to 1,000,000,000,000, one for each symbol, found "
    for name, build in (
        ("counts", lambda: build_prior(SYMBOLS, Recipe(counts=counts, top_words="all"))),
        ("the dictionary's counts", lambda: build_prior(WordList(tuple(SYMBOLS), counts), Recipe(top_words="all"))),
    ):
        with pytest.raises(DataError) as caught:
            build()
        assert str(caught.value) == f"{name}: {expected}{counts[0]} for '<s>'; count again"


def test_too_few_counts() -> None:
    with pytest.raises(DataError, match=r"counts: expected \d+ numbers .*, found shape \(2,\); count again"):
        build_prior(SYMBOLS, Recipe(counts=np.array([1, 2]), top_words="all"))


def test_a_prior_prints_its_sizes() -> None:
    prior = build_prior(iter(SYMBOLS), Recipe(top_words="all"))
    assert repr(prior) == f"Prior({len(SYMBOLS)} words, {len(prior.output.features.names)} features)"


# ---- combinations that were refused ---------------------------------------------------------------------------------

GRAMMAR = "0 1 le\n0 1 la\n1 2 chat\n1 2 maison\n1 2 12\n2\n"


def weights(prior: Prior, *words: str, source: str = "") -> dict[str, float]:
    """Return the share of each possible next token."""
    numbers = [*map(prior.source_symbols.index, source.split()), 2]
    background = prior.background().bind(torch.tensor([numbers]) if source else None)
    state = background.start(1)
    for word in words:
        state = background.advance(state, torch.tensor([prior.index(word)]))
    p = background.view(state).log_weights[0].double().softmax(0).detach()
    return {symbol: float(p[i]) for i, symbol in enumerate(prior.symbols) if p[i] > 1e-12}


def made(files: Path, background: str, **more: object) -> Prior:
    (files / "grammar.txt").write_text(GRAMMAR, encoding="utf-8")
    options = {"text": files / "train.fr", "top_words": 3, **more}
    return build_prior(files / "dict.fr.txt", Recipe(background=background, **options))  # type: ignore[arg-type]


def test_a_grammar_times_n_grams(files: Path) -> None:
    grammar, ngrams = made(files, f"automaton:{files / 'grammar.txt'}"), made(files, "ngram:2")
    both = made(files, f"automaton:{files / 'grammar.txt'} times ngram:2")
    assert both.names == ["automaton", "automaton.2"]
    allowed, likely = weights(grammar, "le"), weights(ngrams, "le")
    products = {word: p * likely[word] for word, p in allowed.items()}
    assert weights(both, "le") == pytest.approx({w: p / sum(products.values()) for w, p in products.items()}, rel=1e-4)
    assert [part.made_from for part in both.parts] == ["automaton", "ngram"]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(both.log_weights, ngrams.log_weights)  # b₀ is the root of the n-grams


def test_two_language_models_and_other_static_weights(files: Path) -> None:
    one, other = made(files, "ngram:1"), made(files, "ngram:2")
    mixed = weights(made(files, "3 ngram:1 plus ngram:2".replace("plus ", "plus 1 ")), "le")
    for word, p in mixed.items():
        assert p == pytest.approx(0.75 * weights(one, "le")[word] + 0.25 * weights(other, "le")[word], rel=1e-4)
    tsv = made(files, f"uniform times '{files / 'weights.tsv'}' at temperature 2")
    assert tsv.names == ["static", "static.2"]
    roots = {"le": 3**0.5, "la": 1, "</s>": 1, "maison": 1}
    assert weights(tsv) == pytest.approx({word: root / (3 + 3**0.5) for word, root in roots.items()})


@pytest.mark.parametrize(
    ("background", "expression"),
    [
        ("ngram:2", "0.5 ngram:2 plus 0.5 translations"),
        ("automaton:grammar.txt", "automaton:grammar.txt times translations"),
        ("ngram:2 times automaton:grammar.txt", "(ngram:2 times automaton:grammar.txt) times translations"),
        ("0.9 ngram:2 plus 0.1 translations", "0.9 ngram:2 plus 0.1 translations"),
        ("ngram:2 times translations", "ngram:2 times translations"),
        ("unigram", "None"),
    ],
)
def test_translations_beside_any_background(
    files: Path, background: str, expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    translations = TranslationOptions(parallel(files), aligner="ibm1")
    prior = made(files, background, translations=translations, evidence=EvidenceOptions(("numbers",)))
    assert str(prior.expression) == expression
    without = weights(prior, "le")
    house = weights(prior, "le", source="house")
    assert house["maison"] > without["maison"]
    if "automaton" in background:
        assert house.keys() <= {"maison", "chat", "12"}


@pytest.mark.parametrize(("is_constraint", "combined"), [(True, "times"), (False, "plus")])
def test_translations_are_multiplied_with_what_another_package_calls_a_constraint(
    files: Path, monkeypatch: pytest.MonkeyPatch, is_constraint: bool, combined: str
) -> None:
    monkeypatch.chdir(files)
    automaton = named_backgrounds()["automaton"]
    monkeypatch.setitem(_REGISTERED, "fst", replace(automaton, is_constraint=is_constraint, example="fst:grammar.txt"))
    translations = TranslationOptions(parallel(files), aligner="ibm1")
    assert f" {combined} " in str(made(files, "fst:grammar.txt", translations=translations).expression)


def test_words_that_need_evidence_beside_any_background(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    evidence = EvidenceOptions(("numbers",), unsupported={"numbers": 0.5})
    plain = weights(made(files, "automaton:grammar.txt"), "le")
    less = made(files, "automaton:grammar.txt", evidence=evidence)
    halved = {word: p * (0.5 if word == "12" else 1) for word, p in plain.items()}
    found = less.background(has_source=False).bind()
    p = found.view(found.advance(found.start(1), torch.tensor([less.index("le")]))).log_weights[0].double().softmax(0)
    assert {w: float(p[less.index(w)]) for w in halved} == pytest.approx(
        {w: q / sum(halved.values()) for w, q in halved.items()}, rel=1e-4
    )
    # translations do not give them their weight again
    translations = TranslationOptions(parallel(files), aligner="ibm1")
    never = EvidenceOptions((), {"house": ["maison"]}, unsupported={"numbers": 0.0})
    assert "12" not in weights(made(files, "ngram:2", translations=translations, evidence=never), source="the 12")


def test_an_open_vocabulary_takes_its_share_of_every_background(files: Path) -> None:
    background = f"ngram:2 plus uniform plus ngram:1 plus automaton:{files / 'grammar.txt'}"
    before, after = made(files, background), made(files, background, open_vocabulary=OpenOptions(types=1))
    assert after.names == [*before.names, "open_vocabulary"]
    unk, le = before.index("<unk>"), before.index("chat")
    for name in before.names:
        old, new = (dict(zip(p.names, p.parts, strict=True))[name] for p in (before, after))
        roots = [
            found.log_weights if name == "static" else found.root_of(prior.log_weights)  # type: ignore[attr-defined]
            for prior, found in ((before, old), (after, new))
        ]
        assert roots[1][unk] > roots[0][unk] and roots[1][le] < roots[0][le]


def test_backgrounds_without_a_word_on_how_they_are_combined(files: Path) -> None:
    from fairseq_llrnn.errors import PriorError
    from fairseq_llrnn.prior.parts.cache import CachePart

    with pytest.raises(PriorError, match="has the backgrounds automaton, cache, and no expression that combines them"):
        made(files, "ngram:2").with_part(CachePart(3)).background()


def test_what_parts_know_of_a_word(files: Path) -> None:
    """Compare with slow counts: n-grams by the background itself, translations by all rows of the table."""
    translated, opened = TranslationOptions(parallel(files), aligner="ibm1"), OpenOptions(floor=1)
    background = "ngram(2, folds=0) times translations"
    prior = made(files, background, translations=translated, open_vocabulary=opened)
    grams, lexical, classes = prior.parts
    assert isinstance(lexical, LexicalPart) and isinstance(classes, OpenVocabularyPart)
    root = prior.background(has_source=False)
    for number in range(len(SYMBOLS)):
        [(kind, [arcs, begins])] = grams.word(prior, number).items()
        start, own_root = grams.automaton.starts[:1], grams.root_of(prior.log_weights)  # type: ignore[attr-defined]
        (weight,) = grams.automaton.log_weights_at(start, np.array([number]), own_root)  # type: ignore[attr-defined]
        slow = grams.background(root, BuildContext(prior, False)).bind()
        assert weight == pytest.approx(slow.view(slow.start(1)).log_weights[0, number].item())
        assert (kind, begins) == ("ngram", f"log weight at the beginning: {weight:.3g}")
        assert arcs == f"arcs that read it: {(grams.automaton.tokens == number).sum():,}"  # type: ignore[attr-defined]
        rows = [(s, p) for i, s in enumerate(SOURCE) for x, p in lexical.word_table.row(i) if x == number]
        assert lexical.word(prior, number) == {"translates": sorted(rows, key=lambda row: -row[1])}
        share = classes.vocabulary.word_shares[number]
        expected = {"unknown": [f"read as <unk> in training: {share:.1%}"]} if share else {}
        assert classes.word(prior, number) == expected


def test_a_folder_without_a_bitext(files: Path) -> None:
    recipe = Recipe(translations=TranslationOptions(files))
    with pytest.raises(OptionError, match="expected a bitext"):
        build_prior([*SPECIALS, "le"], recipe)


OPEN, NUMBERS = OpenOptions(types=1), EvidenceOptions(("numbers",))
LATER = {
    "open vocabulary": {"open_vocabulary": OPEN},
    "evidence": {"evidence": NUMBERS},
    "both": {"open_vocabulary": OPEN, "evidence": NUMBERS},
    "both, with n-grams": {"open_vocabulary": OPEN, "evidence": NUMBERS, "background": "ngram:2 plus cache:3"},
}


@pytest.mark.parametrize("options", LATER.values(), ids=LATER)
def test_a_prior_that_was_built_computes_what_it_computes_when_it_is_read(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object]
) -> None:
    """Later parts may bring features that the tables of earlier parts lack."""
    monkeypatch.chdir(files)
    needs_source = {"source_dictionary": files / "dict.en.txt"} if "evidence" in options else {}
    built = made(files, **{"background": "unigram", **options, **needs_source})  # type: ignore[arg-type]
    built.save(tmp_path / "prior")
    found = []
    for prior in (built, Prior.load(tmp_path / "prior")):
        torch.manual_seed(1)
        head = LogLinearHead(prior, 5, source_size=3).double()
        for parameter in head.parameters():
            torch.nn.init.normal_(parameter)
        source = head.encode_source(["the house 12", "the cat 7"]) if needs_source else None
        target = head.encode(["la maison 12 xyz" if "open_vocabulary" in options else "la maison 12", "le 7"])
        hidden = torch.randn(*target.shape, 5, dtype=torch.float64, requires_grad=True)
        states = None if source is None else torch.randn(*source.shape, 3, dtype=torch.float64)
        loss = head.loss(hidden, target, source=source, source_states=states)
        loss.backward()
        found.append([loss.detach(), hidden.grad, *(parameter.grad for parameter in head.parameters())])
    torch.testing.assert_close(*found)
