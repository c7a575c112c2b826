"""`longest` with grammars and schemas of llguidance: texts end in time, and p' sums to one over them."""

import json
import os
import random
import re
import warnings
from functools import cache
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
import torch

from fairseq_llrnn.errors import DataError

pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

from limited_texts import END, all_texts, tokenizer_of
from tiny_tokenizers import KINDS, tiny_tokenizer

from fairseq_llrnn.huggingface import BackgroundProcessor, parsers
from fairseq_llrnn.huggingface.token_texts import token_texts
from fairseq_llrnn.huggingface.witnesses import Completions

Process = BackgroundProcessor
byte_level = cache(lambda: tiny_tokenizer("byte_level"))
SYMBOLS = ['"a"', '"b"', '"c"', '"ab"', '"abc"', "x", "y", "/a+/", "/b*c/", "/[abc]/", '"a"?', "x*"]


def random_grammar(chance: random.Random) -> str:
    rules = []
    for name in ("start", "x", "y"):
        ways = [" ".join(chance.choices(SYMBOLS, k=chance.randint(1, 3))) for _ in range(chance.randint(1, 3))]
        rules.append(f"{name}: {' | '.join(ways)}")
    return "\n".join(rules) + "\n"


def enumerated(processor: BackgroundProcessor, longest: int) -> set[tuple[int, ...]]:
    """The texts within a limit, by trying each token that the parser allows."""
    found, waiting = set(), [((), processor.weights.matcher.deep_copy())]
    while waiting:
        row, matcher = waiting.pop()
        bits = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
        for token in np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist():
            following = matcher.deep_copy()
            if token == END:
                found.add(row)
            elif len(row) + 2 <= longest and following.consume_token(token):
                waiting.append(((*row, token), following))
    return found


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 60))])
def test_the_texts_of_random_grammars_are_those_of_an_enumeration(seed: int) -> None:
    tokenizer, grammar = tokenizer_of("ab", "ca", "bc", "abc"), random_grammar(random.Random(seed))
    try:
        free = Process.from_grammar(grammar, tokenizer, unread=0)
    except DataError:
        return  # llguidance finds that it has no text
    wanted = enumerated(free, 5)
    if not wanted:
        with pytest.raises(DataError, match=r"longest: expected a Lark grammar for which|`longest` of at least \d"):
            Process.from_grammar(grammar, tokenizer, longest=5)
        return
    least = min(map(len, wanted)) + 1
    if least > 1:
        with pytest.raises(DataError, match=f"`longest` of at least {least}, within which a string can be completed"):
            Process.from_grammar(grammar, tokenizer, longest=least - 1)
    for longest in {least, min(least + 1, 5), 5}:
        found = all_texts(Process.from_grammar(grammar, tokenizer, unread=0, longest=longest), longest)
        assert {*found} == {row for row in wanted if len(row) < longest}
        assert sum(np.exp([*found.values()])) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("grammar", "texts"),
    [
        ('start: x "b"\nx[max_tokens=2]: /a+/\n', "ab aab"),
        ('start: x "b"\nx[max_tokens=2]: /a*/ "c"\n', "cb acb aab"),
        ('start: x "b"\nx[stop="c"]: /a*/\n', "cb acb aacb"),
        ('start: x "a"\nx[lazy]: /[ab]+b/\n', "aba aaba bba baba"),
        ('start: x "a"\nx[suffix="b"]: /a+/\n', "aba aaba"),
        ('start: %regex {"substring_chars": "abc"} "a"\n', "a aa ba ca aba bca abca"),
        ("start: X\nX: /[ab]{1,3}/ & ~/.*bb.*/\n", "a b aa ab ba aaa aab aba baa bab"),
    ],
)  # fmt: skip
def test_parts_of_grammars_that_the_guide_lists(grammar: str, texts: str) -> None:
    tokenizer = tokenizer_of()
    found = all_texts(Process.from_grammar(grammar, tokenizer, unread=0, longest=5), 5)
    assert {tokenizer.decode(row) for row in found} == {*texts.split()}


MANY = {f"key{at}": {"type": "integer"} for at in range(9)}
TEXT = {"type": "string"}
OPEN = {"type": "object", "properties": {"a": TEXT}}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "array", "items": {"type": "object", "properties": MANY, "required": [*MANY]}},
    OPEN | {"required": ["a"]},
    OPEN | {"additionalProperties": {"type": "array", "items": {"$ref": "#"}, "minItems": 2}},
    {"type": "string", "pattern": "^[a-c]{4}(-[0-9]{3}){2}$"},
    {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]}]},
    {"type": "object", "properties": {"w": {"enum": ["cat", "mat"]}, "s": {"minLength": 3}}, "required": ["w", "s"]},
    {"type": "object", "minProperties": 1, "additionalProperties": {"type": "boolean"}},
    {"type": "integer", "minimum": 100_000, "multipleOf": 25},
    {"type": "object", "properties": {"v": TEXT | {"pattern": r"\d+/\d+\.x"}}, "required": ["v"]},
]


def late(tokenizer: Any, generator: torch.Generator) -> torch.Tensor:
    """Random scores that put off the end, and like to open brackets and to separate."""
    texts = [text or b"" for text in token_texts(tokenizer).later]
    opening = torch.tensor([sum(map(text.count, (b"{", b"[", b",", b'"'))) for text in texts])
    scores = 2 * torch.randn(len(texts), generator=generator) + 3.0 * opening
    scores[tokenizer.eos_token_id] = -20.0
    return scores.unsqueeze(0)


def written_by(processor: BackgroundProcessor, tokenizer: Any, longest: int, seed: int) -> list[int]:
    generator, row = torch.Generator().manual_seed(seed), [END]
    while len(row) <= longest and row[-1] != processor.eos:
        p = processor(torch.tensor([row]), late(tokenizer, generator)).exp()
        assert p.sum().item() == pytest.approx(1.0, rel=1e-4), "float32"
        row.append(int(torch.multinomial(p, 1, generator=generator)))
    return row[1:]


@pytest.mark.parametrize("case", range(len(SCHEMAS)))
def test_documents_of_schemas_end_in_time(case: int) -> None:
    tokenizer, schema = byte_level(), SCHEMAS[case]
    free = Process.from_json_schema(schema, tokenizer).weights
    limited = free.within(1)
    least = limited.least(limited.start(1))
    with pytest.raises(DataError, match=f"expected `longest` of at least {least}, within .*, found {least - 1}; give"):
        Process.from_json_schema(schema, tokenizer, longest=least - 1)
    for seed, longest in enumerate((least, least + 1, 2 * least)):
        processor = Process._from_weights(free, tokenizer.eos_token_id, 1, longest)
        row = written_by(processor, tokenizer, longest, seed)
        assert row[-1] == processor.eos, tokenizer.decode(row)
        text = tokenizer.decode(row[:-1], clean_up_tokenization_spaces=False)
        json.loads(text, strict=False)
        states = free.start(1)
        for token in row[:-1]:
            states = free.advance(states, np.array([token]))
        (ending,) = free.rows(states, torch.zeros(1, free.num_tokens))
        assert ending.dense(free.num_tokens, torch.zeros(1))[processor.eos] == 0, text


def test_a_completion_of_thousands_of_tokens_is_found() -> None:
    keys = [f"key number {at}, which is required" for at in range(150)]
    schema = {"type": "object", "properties": {key: TEXT for key in keys}, "required": keys}
    limited = Process.from_json_schema(schema, byte_level()).weights.within(1)
    found = byte_level().decode(limited.witness[:-1])
    assert len(limited.witness) > 2_000 and [*json.loads(found)] == keys


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"wordpiece"}))
def test_lark_grammars_end_in_time(kind: str) -> None:
    """Brackets are closed in time, and a branch without an end is not begun."""
    tokenizer = tiny_tokenizer(kind)
    grammar = 'start: "a" x | "(" start ")" | "c"\nx: "b" x\n'
    with pytest.raises(DataError, match="`longest` of at least 2, within"):
        Process.from_grammar(grammar, tokenizer, longest=1)
    for longest in (4, 9):
        processor = Process.from_grammar(grammar, tokenizer, unread=1, longest=longest)
        scores = torch.zeros(1, len(tokenizer))
        scores[0, [token for token, text in enumerate(token_texts(tokenizer).later) if text == b"("]] = 9.0
        row = [END]
        while row[-1] != processor.eos and len(row) <= longest:
            row.append(int(processor(torch.tensor([row]), scores).argmax()))
        depth = tokenizer.decode(row[1:-1]).strip().count("(")
        assert row[-1] == processor.eos and tokenizer.decode(row[1:-1]).strip() == "(" * depth + "c" + ")" * depth
        assert depth >= (longest - 3) // 2 or b"(" not in token_texts(tokenizer).later


RECURSIVE = {
    "questions": """
start: "answer(" (size | state) ")"
size: "size(" state ")" | "count(" (state | city) ")"
state: "state0" | "largest(" state ")" | "next_to(" states ")" | "both(" states "," state ")" | "loc_1(" city ")"
states: "all" | state
city: "city0" | "capital(" state ")" | "largest(" city ")" | "most(" city ")" | "loc_2(" states ")"
""",
    "sums": """
start: start "+" product | start "-" product | product
product: product "*" factor | product "/" factor | factor
factor: "(" start ")" | NUMBER | name "(" start ("," start)* ")"
name: "sine" | "cosine" | "maximum" | "minimum"
NUMBER: /[0-9]+(\\.[0-9]{2})?/
""",
    "statements": """
start: statement+
statement: "if " test " then " block ["else " block] "end " | "while " test " do " block "end " | "call " name " "
?block : statement
    | statement block
test: name " is " name | "not " test | "either " test " or " test
name: "first" | "second" | "third"
""",
    "elements": """
start: element
element: "<list>" element* "</list>" | "<item>" text "</item>" | "<table>" (row row+) "</table>"
row: "<row>" element "</row>"
text: /[a-z]{3,9}/
""",
    "s-expressions": """
start: pair
pair: "(" value " . " value ")" | "(lambda (" name (" " name)* ") " value ")" | "(define " name " " value ")"
value: pair | "nil" | name
name: LETTERS
LETTERS: /[a-z]/ /[a-z]/ /[a-z0-9]/
""",
}


@pytest.mark.parametrize("name", RECURSIVE)
def test_far_from_the_limit_no_token_is_missing(name: str) -> None:
    """Rules that contain themselves have many ways to go on, and few of them end soon."""
    tokenizer = tiny_tokenizer("byte_level", 600, RECURSIVE[name].split() * 4)
    free = Process.from_grammar(RECURSIVE[name], tokenizer).weights
    limited = free.within(150)
    chance, scores = random.Random(name), torch.zeros(1, free.num_tokens)
    for _ in range(3):
        states, with_limit = free.start(1), limited.start(1)
        for written in range(14):
            (row,) = free.rows(states, scores)
            wanted = row.dense(free.num_tokens, scores).isfinite().numpy()
            (found,) = limited.in_reach(with_limit, 150 - written)
            missing = [tokenizer.decode(token) for token in np.flatnonzero(wanted & ~found)]
            assert not missing, written
            going_on = np.flatnonzero(wanted & (np.arange(len(wanted)) != free.eos))
            token = chance.choice(going_on.tolist() or [free.eos])
            states = free.advance(states, np.array([token]))
            with_limit = limited.advance(with_limit, np.array([token]))
            if states == [None]:
                break


def schema_of(pattern: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": TEXT | {"pattern": pattern}}, "required": ["a"]}


@pytest.mark.parametrize("pattern", ["at.*9", r".*@.*\.(com|org)", "([^,]{3},)+z{2}", "a/.*b", "x.*[[q]", "é+.*x"])
@pytest.mark.parametrize("is_lark", [False, True])
def test_expressions_in_which_any_character_may_follow(pattern: str, is_lark: bool) -> None:
    tokenizer = byte_level()
    if is_lark:
        in_rust = pattern.replace("[[q]", r"[\[q]").replace("/", r"\/")
        free = Process.from_grammar(f'// "a comment\nstart: "is /no/ pattern: " /{in_rust}/i', tokenizer).weights
    else:
        free = Process.from_json_schema(schema_of(f"^{pattern}$"), tokenizer).weights
        assert Process.from_json_schema(schema_of(pattern), tokenizer).weights.shortest is not None
    longest, end = len(free.shortest) + 9, tokenizer.eos_token_id
    row = written_by(Process._from_weights(free, end, 1, longest), tokenizer, longest, 1)
    text = tokenizer.decode(row[:-1], clean_up_tokenization_spaces=False)
    written = text.removeprefix("is /no/ pattern: ") if is_lark else json.loads(text)["a"]
    assert row[-1] == end and re.fullmatch(pattern, written, re.IGNORECASE if is_lark else 0), text


SQL = """start: "SELECT " columns " FROM " table (" WHERE " cond)? (" ORDER BY " NAME)? ";"
columns: "*" | NAME (", " NAME)*
table: NAME
cond: expr (" AND " expr | " OR " expr)*
expr: NAME " = " /[0-9]+/ | "(" cond ")"
NAME: /[a-z_][a-z0-9_]*/
"""


@pytest.mark.parametrize(
    ("grammar", "most"),
    [
        (SQL, 26), ('start: "x " /a.*b/ | "y" /e.*;/ x\nx: "(" x ")" | /c.*d/', 6),
        ('start: "# " /[^\\n]+/ "\\n\\n" ("- " /[^\\n]+/ "\\n"){3,5} "``é" /(?s:.*)```/', 40),
        ('start: "<think>" b " Answer: " /[A-E].*\\./\nb[suffix="</think>"]: /(.|\\n)*/', 40),
        (r"start: /(?<y>[0-9])\/.*\/(?<d>\p{Lu}\p{L}[\p{Nd}x]\u{e9})/", 12), ('start: "\\x41" /.*;/', 3),
        (r"start: /\pL+@.*x9/", 9), ('# a note "pattern": "\\d", /x\nstart: "#" /a.*b/', 6),
    ],
)  # fmt: skip
def test_grammars_whose_texts_the_search_does_not_find_by_tokens_alone(grammar: str, most: int) -> None:
    assert len(Process.from_grammar(grammar, byte_level(), longest=most).weights.shortest) <= most


@pytest.mark.parametrize(
    "schema",
    [
        schema_of(r"^(?<y>\d{4})/.*/(?<d>\d\d)$") | {"maxProperties": 1}, schema_of(r"^\p{Lu}\p{L}+ .*\p{Nd}$"),
        schema_of(r"^\u{1F600}.*b$"), schema_of(r"^[^\s]+[\w]\.jsonl?$"),
        {"patternProperties": {"^a$": False, "^x-.*-i@d$": {"pattern": "^.*#.*$"}}, "additionalProperties": False,
         "minProperties": 1},
    ],
)  # fmt: skip
def test_schemas_whose_patterns_python_writes_otherwise(schema: dict[str, Any]) -> None:
    Process.from_json_schema({"type": "object"} | schema, byte_level(), longest=24)


@pytest.mark.parametrize(
    ("rust", "python"),
    [
        (r"\x{61}\u{1F600}", r"\U00000061\U0001f600"), ("(?<y>a)(?<=b)(?<!c)", "(?P<y>a)(?<=b)(?<!c)"),
        (r"\p{Lu}\p{Ll}\pL[\p{Nd}\pZ]\p{Greek}x", "Aaa[0 ]-x"), (r"\\p{Lu}\\x{61}\d{2}", r"\\p{Lu}\\x{61}\d{2}"),
    ],
)  # fmt: skip
def test_syntax_of_rust(rust: str, python: str) -> None:
    assert parsers.in_python(rust) == python


BASE_64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


def test_what_goes_on_after_one_token_is_tried_after_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search after each token of a large vocabulary would take seconds."""
    tokenizer = byte_level()
    limited = Process.from_json_schema(schema_of(BASE_64), tokenizer).weights.within(40)
    (state,) = limited.start(1)
    for token in tokenizer('{"a":"', add_special_tokens=False)["input_ids"]:
        (state,) = limited.advance([state], np.array([token]))
    calls, search = [], Completions.search
    monkeypatch.setattr(Completions, "search", lambda *args, **keys: (calls.append(1), search(*args, **keys))[1])
    (found,) = limited.in_reach([state], 34)
    texts = token_texts(tokenizer).later
    wanted = [token for token, text in enumerate(texts) if text and re.fullmatch(b"[A-Za-z0-9+/]+", text)]
    assert len(wanted) > 60 and found[wanted].all()
    assert len(calls) <= 8
    monkeypatch.setattr(parsers, "MOST_SEARCHED", 2)
    calls.clear()
    (found,) = limited.in_reach([state], 33)
    assert len(calls) <= 2 and 0 < found.sum() < found[wanted].size and found[state.witness[0]]


@pytest.mark.parametrize("schema", [BASE_64, ".*@.*", "^([a-z]{2})*$"])
def test_each_allowed_token_has_a_completion(schema: str) -> None:
    """Also if the rows of a batch have smaller limits than the text (`remaining` is then not the row's own)."""
    tokenizer = byte_level()
    free = Process.from_json_schema(schema_of(schema), tokenizer).weights
    longest, chance = len(free.shortest) + 6, random.Random(1)
    states = free.within(longest).start(1)
    limited = free.within(longest)
    for written in range(longest - 1):
        allowed = limited.in_reach(states, longest + 40 - written)[0] & limited.in_reach(states, longest - written)[0]
        for token in np.flatnonzero(allowed).tolist():
            (after,) = limited.advance([states[0].copy()], np.array([token]))
            assert after is None or len(after.witness) <= longest - written - 1
        states = limited.advance(states, np.array([chance.choice(np.flatnonzero(allowed).tolist())]))
        if states == [None]:
            break


def test_sets_of_rust_alone_cause_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Process.from_grammar("start: /[[:alpha:]]+.*;/", byte_level(), longest=9)


@pytest.mark.parametrize(("schema", "longest"), [(SCHEMAS[2], 40), (schema_of(BASE_64), 14), (schema_of(".*@.*"), 14)])
def test_scores_do_not_depend_on_how_a_text_was_read(schema: dict[str, Any], longest: int) -> None:
    """Step by step, or from its beginning by another processor."""
    tokenizer = byte_level()
    processor = Process.from_json_schema(schema, tokenizer, unread=1, longest=longest)
    generator, row = torch.Generator().manual_seed(1), [END]
    while row[-1] != processor.eos or len(row) == 1:
        scores = late(tokenizer, generator)
        log_p = processor(torch.tensor([row]), scores)
        fresh = Process._from_weights(processor.weights, processor.eos, 1, longest)
        assert torch.equal(fresh(torch.tensor([row]), scores), log_p)
        row.append(int(torch.multinomial(log_p.exp(), 1, generator=generator)))


def test_several() -> None:
    tokenizer = tokenizer_of("ab")
    lark = Process.from_grammar('start: "a" start | "c"\n', tokenizer)
    two = Process.product([lark, Process.from_regex("(aa)*c", tokenizer)], unread=0, longest=6)
    assert {*all_texts(two, 6)} == {(2,) * many + (4,) for many in (0, 2, 4)}
    mixed = Process.mixture([lark, Process.from_words(["b"], tokenizer)], [0.5, 0.5], unread=0, longest=4)
    found = all_texts(mixed, 4)
    assert sum(np.exp([*found.values()])) == pytest.approx(1.0) and (2, 2, 4) in found and (3,) in found


def test_a_grammar_without_a_text() -> None:
    with pytest.raises(DataError, match="^from_grammar: longest: expected a Lark grammar for which a search"):
        Process.from_grammar('start: "a" start\n', byte_level(), longest=9)
