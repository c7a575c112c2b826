"""Constraints over tokenizers of four kinds: each step against all tokenisations of all strings, in float64."""

import itertools
import math
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from thinned_grids import one_in

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from tiny_tokenizers import KINDS, tiny_tokenizer
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.huggingface import BackgroundProcessor
from fairseq_llrnn.huggingface.regular_expressions import with_cases

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

tokenizer_of = cache(tiny_tokenizer)
END = 1


def pieces(tokenizer: Any) -> dict[int, str]:
    """The tokens that match text, as `decode` writes each one in the middle of a text; bytes as Latin-1."""
    found = {}
    for number in range(3, len(tokenizer)):
        token = tokenizer.convert_ids_to_tokens(number)
        if token.startswith("<0x"):
            found[number] = chr(int(token[3:5], 16))
        elif tokenizer.backend_tokenizer.decoder.__class__.__name__ == "ByteLevel":
            table = {character: byte for byte, character in _byte_characters().items()}
            found[number] = "".join(chr(table[character]) for character in token)
        else:
            text = tokenizer.backend_tokenizer.decoder.decode(["x", token]).removeprefix("x")
            found[number] = text.encode().decode("latin-1")
    return found


@cache
def _byte_characters() -> dict[int, str]:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return dict(bytes_to_unicode())


def tokenisations(tokenizer: Any, text: str, kind: str) -> list[list[int]]:
    """All token sequences whose decoded text this is, by trying every token at every place."""
    bytes_of = pieces(tokenizer)
    wanted = text.encode().decode("latin-1")
    starts = wanted if kind == "byte_level" else f" {wanted}"  # the first space is not part of the text
    found = [*_cut(starts, bytes_of)]
    if kind != "byte_level":
        found += [*_cut(wanted, bytes_of)] if not wanted.startswith(" ") else []
    if kind == "wordpiece":  # a first token ##x is written as it is
        hashes = {n: tokenizer.convert_ids_to_tokens(n) for n in bytes_of}
        found = [row for row in found if not hashes[row[0]].startswith("##")]
    return found


def _cut(text: str, bytes_of: dict[int, str]) -> Any:
    if not text:
        yield []
    for number, piece in bytes_of.items():
        if piece and text.startswith(piece):
            for rest in _cut(text[len(piece) :], bytes_of):
                yield [number, *rest]


def renormalised(sequences: dict[tuple[int, ...], float], prefix: tuple[int, ...], scores: Tensor) -> Tensor:
    """p' after a prefix by hand: the weight of a token is that of the sequences that go on with it."""
    b = torch.zeros(len(scores), dtype=torch.float64)
    for sequence, weight in sequences.items():
        if sequence[: len(prefix)] == prefix:
            b[sequence[len(prefix)]] = max(float(b[sequence[len(prefix)]]), weight)
    weights = scores.softmax(0) * b
    return weights / weights.sum()


CASES: dict[str, tuple[Callable[..., BackgroundProcessor], list[str]]] = {
    "regex": (lambda t, **o: BackgroundProcessor.from_regex("yes|no|12 ?3", t, **o), ["yes", "no", "12 3", "123"]),
    "letters": (lambda t, **o: BackgroundProcessor.from_regex("(ca|c)f(é|e)", t, **o), ["café", "cafe", "cfé", "cfe"]),
    "words": (
        lambda t, **o: BackgroundProcessor.from_words(["the cat", "le"], t, separators=(), **o),
        ["the cat", "le"],
    ),
    "grammar": (
        lambda t, **o: BackgroundProcessor.from_grammar('S -> "the" N | N\nN -> "cat" | "mat"\n', t, **o),
        ["the cat", "the mat", "cat", "mat"],
    ),
    "ambiguous Lark": (
        lambda t, **o: BackgroundProcessor.from_grammar('start: a | b\na: "12"\nb: "1"? "2"\n', t, **o),
        ["12", "2"],
    ),
    "characters": (
        lambda t, **o: BackgroundProcessor.from_grammar('%depth 3\nS -> "1" S | "2"\n', t, separator="", **o),
        ["2", "12", "112"],
    ),
}


@pytest.mark.parametrize(("kind", "case", "canonical"), one_in(5, KINDS, CASES, [False, True]))
def test_each_step_is_the_renormalised_distribution(kind: str, case: str, canonical: bool) -> None:
    tokenizer = tokenizer_of(kind)
    build, texts = CASES[case]
    if canonical and kind in ("wordpiece", "unigram") and case == "letters":
        pytest.skip("the tokenizer changes or lacks these letters: an error, tested below")
    if canonical and case == "ambiguous Lark":
        pytest.skip("an error, tested in test_constraint_errors.py")
    processor = build(tokenizer, canonical=canonical, unread=1)
    sequences: dict[tuple[int, ...], float] = {}
    for text in texts:
        if canonical:
            rows = [tokenizer(text, add_special_tokens=False)["input_ids"]]
        else:
            rows = tokenisations(tokenizer, text, kind)
        for row in rows:
            assert tokenizer.decode(row, clean_up_tokenization_spaces=False) == text
        sequences |= {(*row, END): 1.0 for row in rows}
    check_steps(processor, sequences, len(tokenizer))


def check_steps(processor: BackgroundProcessor, sequences: dict[tuple[int, ...], float], size: int) -> None:
    """Every step after every prefix, by hand, with more columns than the tokenizer has tokens."""
    assert sequences
    generator = torch.Generator().manual_seed(1)
    for prefix in sorted({sequence[:length] for sequence in sequences for length in range(len(sequence))}):
        scores = torch.randn(size + 5, generator=generator, dtype=torch.float64)
        found = processor(torch.tensor([[0, *prefix]]), scores.unsqueeze(0))[0].exp()
        torch.testing.assert_close(found, renormalised(sequences, prefix, scores), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_a_grammar_and_a_mixture(kind: str) -> None:
    """b is the weight of the strings that go on with a token; a mixture adds those of its parts."""
    tokenizer = tokenizer_of(kind)
    rules = 'S -> "t" N [0.75] | "m" [0.25]\nN -> "c" [0.5] | "d" [0.5]\n'
    shares = {"t c": 0.375, "t d": 0.375, "m": 0.25}
    of = {text: {(*row, END) for row in tokenisations(tokenizer, text, kind)} for text in [*shares, "t 2"]}
    grammar = BackgroundProcessor.from_grammar(rules, tokenizer, unread=1)
    regex = BackgroundProcessor.from_regex("t 2|m", tokenizer, unread=1)
    mixture = BackgroundProcessor.mixture([grammar, regex], [0.4, 0.6])
    generator = torch.Generator().manual_seed(1)
    total: dict[tuple[int, ...], float] = {}  # what the strings weigh that begin with tokens
    for text, share in shares.items():
        for begin in {row[:length] for row in of[text] for length in range(len(row) + 1)}:
            total[begin] = total.get(begin, 0.0) + share
    for prefix in sorted({row[:length] for rows in of.values() for row in rows for length in range(len(row))}):
        scores = torch.randn(len(tokenizer), generator=generator, dtype=torch.float64)
        b, masked = torch.zeros(2, len(tokenizer), dtype=torch.float64)
        for begin, weight in total.items():
            if begin[:-1] == prefix and begin:
                b[begin[-1]] = weight / total[prefix]
        for row in of["t 2"] | of["m"]:
            if row[: len(prefix)] == prefix:
                masked[row[len(prefix)]] = 1.0
        for processor, weights in ((grammar, b), (mixture, 0.4 * b + 0.6 * masked)):
            expected = scores.softmax(0) * weights
            if expected.sum() > 0:
                found = processor(torch.tensor([[0, *prefix]]), scores.unsqueeze(0))[0].exp()
                torch.testing.assert_close(found, expected / expected.sum(), rtol=1e-8, atol=1e-12)


def test_scores_of_other_kinds() -> None:
    """Gradients pass, and bfloat16 gives what float32 does."""
    tokenizer = tokenizer_of("byte_level")
    processor = BackgroundProcessor.from_regex("[ab]|12", tokenizer)
    written, scores = torch.zeros(2, 1, dtype=torch.long), torch.randn(2, len(tokenizer), requires_grad=True)
    found, wanted = processor(written, scores), processor(written, scores.detach())
    torch.testing.assert_close(found.detach(), wanted)
    found.exp()[0, wanted[0].argmax()].backward()
    assert scores.grad is not None and (scores.grad[0] != 0).tolist() == wanted[0].isfinite().tolist()
    rounded = processor(written, scores.detach().bfloat16())
    torch.testing.assert_close(rounded.float(), wanted, rtol=0.02, atol=0.02)


@cache
def model_of(size: int) -> Any:
    torch.manual_seed(2)
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 96, "initializer_range": 0.7}
    special = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=size, **sizes, **special)).eval().double()


def accepts(case: str, text: str) -> bool:
    if case in ("terms", "product of terms"):
        alone = r"(?<![0-9a-zA-Z\u0080-\U0010ffff]){}(?![0-9a-zA-Z\u0080-\U0010ffff])"
        return all(re.search(alone.format(forms), text) for forms in ("dort", "(cat|le chat)"))
    patterns = {
        "schema": r'\{ ?"a" ?: ?-?(0|[1-9][0-9]*) ?, ?"b" ?: ?("cat"|"mat") ?\}', "numbers": "[0-9]+( [0-9]+){1,2}",
        "words": "(cat|the mat)( (cat|the mat))*", "product": "(cat|the mat) (cat|the mat) cat",
    }  # fmt: skip
    return re.fullmatch(patterns[case], text) is not None


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["cat", "mat"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
LONG_CASES: dict[str, Callable[..., BackgroundProcessor]] = {
    "schema": lambda t, **o: BackgroundProcessor.from_json_schema(SCHEMA, t, **o),
    "numbers": lambda t, **o: BackgroundProcessor.from_regex("[0-9]+( [0-9]+){1,2}", t, **o),
    "words": lambda t, **o: BackgroundProcessor.from_words(["cat", "the mat"], t, **o),
    "terms": lambda t, **o: BackgroundProcessor.from_terms([["cat", "le chat"], "dort"], t, **o),
    "product of terms": lambda t, **o: BackgroundProcessor.product(
        [BackgroundProcessor.from_terms([["cat", "le chat"]], t), BackgroundProcessor.from_terms(["dort"], t)], **o
    ),
    "product": lambda t, **o: BackgroundProcessor.product(
        [
            BackgroundProcessor.from_words(["cat", "the mat"], t),
            BackgroundProcessor.from_regex("[a-z]+( [a-z]+){2,4}", t) * BackgroundProcessor.from_regex(".* cat", t),
            BackgroundProcessor.from_regex("(?:the )?.at (?:the )?.at .at", t),
        ],
        **o,
    ),
}


@pytest.mark.parametrize(("case", "kind"), one_in(3, LONG_CASES, KINDS))
def test_generate_writes_accepted_texts_with_exact_scores(kind: str, case: str) -> None:
    """Beams, samples and greedy search, with one processor; prompts of a batch are padded on the left."""
    if kind == "wordpiece" and case == "schema":
        return  # its words are separated by spaces
    tokenizer = tokenizer_of(kind)
    model, most = model_of(len(tokenizer)), 20
    processor = LONG_CASES[case](tokenizer, longest=most)
    batch, mask = torch.tensor([[0, 0, END], [END, 5, 6]]), torch.tensor([[0, 0, 1], [1, 1, 1]])
    beams = {"num_beams": 3, "length_penalty": 0.0, "return_dict_in_generate": True, "output_scores": True}
    options = {"max_new_tokens": most, "logits_processor": [processor]}
    found = model.generate(batch, attention_mask=mask, **options, **beams)
    alone = model.generate(batch[:1, 2:], **options, **beams)
    torch.manual_seed(7)
    sampled = model.generate(batch, attention_mask=mask, **options, do_sample=True)
    for row in [*found.sequences[:, 3:].tolist(), *sampled[:, 3:].tolist()]:
        text = tokenizer.decode(row[: row.index(END)], clean_up_tokenization_spaces=False)
        assert accepts(case, text), text
    first, own = found.sequences[0, 3:].tolist(), alone.sequences[0, 1:].tolist()
    first, own = first[: first.index(END) + 1], own[: own.index(END) + 1]
    assert first == own, "padding on the left changes nothing"
    score = log_p_by_hand(model, processor, [END], own)
    assert found.sequences_scores[0].item() == pytest.approx(score, rel=1e-5), "generate works in float32"


@torch.inference_mode()
def log_p_by_hand(model: Any, processor: BackgroundProcessor, prompt: list[int], row: list[int]) -> float:
    """Σ log p' of a text's tokens, each step of which is read from its beginning."""
    total = 0.0
    for length, token in enumerate(row):
        written = torch.tensor([[*prompt, *row[:length]]])
        fresh = BackgroundProcessor._from_weights(processor.weights, END, len(prompt), processor.longest)
        total += fresh(written, model(written).logits[:, -1])[0, token].item()
    return total


def test_a_beam_search_prefers_complete_texts_to_a_dead_end() -> None:
    """Parts that are not one automaton share "yes", and no text begins with it."""
    tokenizer = tokenizer_of("byte_level")
    one, other = (
        BackgroundProcessor.from_regex(pattern, tokenizer, canonical=True)
        for pattern in ("yes no|maybe", "yes 12|maybe")
    )
    model = model_of(len(tokenizer))
    yes, maybe = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("yes", "maybe"))
    scores = torch.zeros(1, len(tokenizer), dtype=torch.float64)
    scores[0, yes[0]] = 9.0  # the dead end looks better
    first = scores.log_softmax(1)[0]
    expected = math.log1p(-1 / (1 + math.exp(first[maybe[0]] - first[yes[0]])))
    for processor in (one * other, (one * other) * BackgroundProcessor.from_regex("[a-z 0-9]*", tokenizer)):
        assert processor(torch.tensor([[0]]), scores)[0, maybe[0]].item() == pytest.approx(expected)
        for length in range(1, len(yes)):
            processor(torch.tensor([[0, *yes[:length]]]), scores)
        dead = processor(torch.tensor([[0, *yes]]), scores)[0]
        assert dead[END].item() == -1e9 and dead.isfinite().sum() == 1
        after_end = processor(torch.tensor([[0, *yes, END]]), scores)[0]
        assert after_end[END].item() == 0.0 and after_end.isfinite().sum() == 1
    options = {"max_new_tokens": 12, "logits_processor": [one * other], "output_scores": True}
    found = model.generate(torch.tensor([[END]]), num_beams=4, return_dict_in_generate=True, **options)
    assert tokenizer.decode(found.sequences[0], skip_special_tokens=True) == "maybe"
    assert found.sequences_scores[0] > -1e6


ARPA = """\\data\\
ngram 1=6
ngram 2=4

\\1-grams:
-0.9\t<unk>
-99\t<s>\t-0.2
-0.6\t</s>
-0.5\ta\t-0.3
-0.7\tb\t-0.1
-0.8\tc

\\2-grams:
-0.2\t<s> a
-0.4\ta b
-0.3\tb </s>
-1.1\tb a

\\end\\
"""


@pytest.mark.parametrize("weight", [0.5, 1.0, 2.5])
def test_n_grams_over_tokens(weight: float, tmp_path: Path) -> None:
    """log p + weight · log p of the file, renormalised, after all prefixes of up to three tokens."""
    from fairseq_llrnn.tokenizer import word_tokenizer

    (tmp_path / "bigrams.arpa").write_text(ARPA, encoding="utf-8")
    tokenizer = word_tokenizer([*SPECIALS, "a", "b", "c"], False)
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    rows = [line.split("\t") for line in ARPA.splitlines() if "\t" in line]
    log10_p = {tuple(row[1].split()): float(row[0]) for row in rows}
    back_off = {row[1]: float(row[2]) for row in rows if len(row) > 2}
    processor = BackgroundProcessor.from_ngram(tmp_path / "bigrams.arpa", tokenizer, weight, unread=1)
    generator = torch.Generator().manual_seed(1)
    for prefix in (p for length in range(4) for p in itertools.product(["a", "b", "c", "<unk>"], repeat=length)):
        before, b = ("<s>", *prefix)[-1], torch.zeros(len(names), dtype=torch.float64)
        for number, name in enumerate(names):
            if name not in ("<s>", "<pad>"):
                log10 = log10_p.get((before, name), log10_p.get((name,), -99.0) + back_off.get(before, 0.0))
                b[number] = 10 ** (weight * log10)
        scores = torch.randn(len(names), generator=generator, dtype=torch.float64)
        written = torch.tensor([[2, *map(names.index, prefix)]])
        wanted = scores.softmax(0) * b
        found = processor(written, scores.unsqueeze(0))[0].exp()
        torch.testing.assert_close(found, wanted / wanted.sum(), rtol=1e-6, atol=1e-9)


WORDS_ARPA = ARPA.replace("a b", "the cat").replace("\ta\t", "\tthe\t").replace("\tb\t", "\tcat\t")
WORDS_ARPA = WORDS_ARPA.replace("\tc\n", "\tca\n").replace("<s> a", "<s> the").replace("b a", "cat the")
WORDS_ARPA = WORDS_ARPA.replace("b </s>", "cat </s>")


class ByHand:
    """p of words by the file, made to sum to one, and Φ (word_ngrams.py) over all words that have a beginning."""

    def __init__(self) -> None:
        rows = [line.split("\t") for line in WORDS_ARPA.splitlines() if "\t" in line]
        self.log10_p = {tuple(row[1].split()): float(row[0]) for row in rows}
        self.back_off = {row[1]: float(row[2]) for row in rows if len(row) > 2}
        self.words = [words[0] for words in self.log10_p if len(words) == 1 and words[0][0] != "<"]

    def p(self, before: str, word: str) -> float:
        shares = {
            each: 10 ** self.log10_p.get((before, each), self.log10_p[each,] + self.back_off.get(before, 0.0))
            for each in [*self.words, "<unk>", "</s>"]
        }
        return shares[word] / sum(shares.values())

    def value(self, text: bytes, has_ended: bool) -> float:
        """p of the complete words, times that of the next one's beginning, or of the end."""
        pieces, begun = [piece.decode("latin-1") for piece in text.split()], ""
        if pieces and not has_ended and not text[-1:].isspace():
            begun = pieces.pop()
        words = ["<s>", *(word if word in self.words else "<unk>" for word in pieces)]
        total = math.prod(self.p(before, word) for before, word in itertools.pairwise(words))
        if has_ended:
            return total * self.p(words[-1], "</s>")
        ways = [word for word in self.words if word.startswith(begun)]
        return total * sum(self.p(words[-1], word) for word in [*ways, "<unk>"])


@pytest.mark.parametrize("weight", [0.5, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_n_grams_over_words(kind: str, weight: float, tmp_path: Path) -> None:
    """Each step against the values of all texts that are a token longer, along random texts."""
    (tmp_path / "words.arpa").write_text(WORDS_ARPA, encoding="utf-8")
    tokenizer = tokenizer_of(kind)
    if kind == "byte_level":
        tokenizer = tiny_tokenizer(kind)
        tokenizer.add_tokens(["the ca", "t  the\ncat ", "  "])
    processor = BackgroundProcessor.from_ngram(tmp_path / "words.arpa", tokenizer, weight, unit="words", unread=1)
    by_hand, texts = ByHand(), processor.texts
    assert texts is not None
    generator = torch.Generator().manual_seed(5)
    seen = set()
    for _ in range(6):
        written: list[int] = []
        while len(written) < 8:
            before = texts.text(written) or b""
            b = torch.zeros(len(tokenizer), dtype=torch.float64)
            for token in range(len(tokenizer)):
                text = texts.text([*written, token])
                if token == END or text is not None:
                    longer = before if token == END else text or b""
                    b[token] = (by_hand.value(longer, token == END) / by_hand.value(before, False)) ** weight
            scores = torch.randn(len(tokenizer), generator=generator, dtype=torch.float64)
            found = processor(torch.tensor([[0, *written]]), scores.unsqueeze(0))[0].exp()
            wanted = scores.softmax(0) * b
            torch.testing.assert_close(found, wanted / wanted.sum(), rtol=1e-6, atol=1e-12)
            seen |= {word for word in by_hand.words if word.encode() in before.split()}
            following = int(torch.multinomial(b**3, 1, generator=generator))
            if following == END:
                break
            written.append(following)
    assert seen, "some texts have words of the model"


@pytest.mark.parametrize("text", ["", "the", " cat the", "ca\tdog  the "])
def test_weights_of_a_whole_text(text: str, tmp_path: Path) -> None:
    """They multiply to the text's weight divided by 1 − p(</s>) at the start."""
    (tmp_path / "words.arpa").write_text(WORDS_ARPA, encoding="utf-8")
    tokenizer, by_hand, log_b = tiny_tokenizer("byte_level"), ByHand(), 0.0
    weights = BackgroundProcessor.from_ngram(tmp_path / "words.arpa", tokenizer, unit="words").weights
    states, scores = weights.start(1), torch.zeros(1, len(tokenizer), dtype=torch.float64)
    for token in [*tokenizer(text)["input_ids"], END]:
        log_b += weights.rows(states, scores)[0].dense(len(tokenizer), scores)[token].item()
        states = weights.advance(states, torch.tensor([token]).numpy())
    p_end = by_hand.p("<s>", "</s>")
    assert math.exp(log_b) == pytest.approx(by_hand.value(text.encode(), True) / (1 - p_end), rel=1e-6)


def test_n_grams_over_words_write_them_under_beams(tmp_path: Path) -> None:
    (tmp_path / "words.arpa").write_text(WORDS_ARPA.replace("-0.9\t<unk>", "-9\t<unk>"), encoding="utf-8")
    tokenizer = tokenizer_of("byte_level")
    processor = BackgroundProcessor.from_ngram(tmp_path / "words.arpa", tokenizer, 3.0, unit="words")
    found = model_of(len(tokenizer)).generate(
        torch.tensor([[END, 5, 6]]),
        num_beams=3,
        num_return_sequences=3,
        max_new_tokens=12,
        logits_processor=[processor],
    )
    for text in tokenizer.batch_decode(found[:, 3:], skip_special_tokens=True):
        assert {*text.split()} <= {"the", "cat", "ca"}, text


def test_n_grams_without_unknown_words(tmp_path: Path) -> None:
    path, tokenizer = tmp_path / "words.arpa", tokenizer_of("byte_level")
    path.write_text(WORDS_ARPA.replace("-0.9\t<unk>\n", "").replace("1=6", "1=5"), encoding="utf-8")
    with pytest.raises(DataError, match="words.arpa: expected .*<unk>"):
        BackgroundProcessor.from_ngram(path, tokenizer, unit="words")
    with pytest.raises(OptionError, match="from_ngram: unit='word': expected one of tokens, words; did you mean"):
        BackgroundProcessor.from_ngram(path, tokenizer, unit="word")


def test_n_grams_of_other_words(tmp_path: Path) -> None:
    from fairseq_llrnn.tokenizer import word_tokenizer

    path = tmp_path / "bigrams.arpa"
    path.write_text(ARPA, encoding="utf-8")
    with pytest.raises(OptionError, match="from_ngram: expected a weight above 0, found 0"):
        BackgroundProcessor.from_ngram(path, tokenizer_of("byte_level"), 0)
    with pytest.raises(
        DataError, match="bigrams.arpa: expected n-grams of words of the dictionary, found no word of i"
    ):
        BackgroundProcessor.from_ngram(path, word_tokenizer([*SPECIALS, "x"], False))


def test_texts_of_tokens_are_read_once_until_the_tokens_change() -> None:
    tokenizer = tiny_tokenizer("byte_level")
    first, second = (BackgroundProcessor.from_regex("a|b", tokenizer) for _ in range(2))
    assert first.texts is second.texts
    tokenizer.add_tokens(["zzz"])
    assert BackgroundProcessor.from_regex("zzz", tokenizer).texts.size == first.texts.size + 1


@pytest.mark.parametrize(
    "ranges", [((97, 99),), ((65, 90),), ((0x130, 0x131),), ((0x3B1, 0x3C9),), ((0x6B, 0x6B), (0x2126, 0x2126))]
)
def test_cases_are_ignored_as_in_python(ranges: tuple[tuple[int, int], ...]) -> None:
    pattern = re.compile("(?i)[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges) + "]")
    allowed = with_cases(ranges)
    for number in range(0x2200):
        assert any(low <= number <= high for low, high in allowed) == bool(pattern.fullmatch(chr(number)))
