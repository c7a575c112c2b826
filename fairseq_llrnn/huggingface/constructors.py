"""Constraints on any fast tokenizer, as constructors of a BackgroundProcessor (a mixin)."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.errors import DataError, OptionError, check_choice
from fairseq_llrnn.features.dictionary import EOS, PAD, SPECIALS, WordList
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.huggingface.background_weights import BackgroundWeights
from fairseq_llrnn.huggingface.byte_automata import USUAL_LIMITS, ByteAutomaton, LimitError, Limits, Meter, utf8_size
from fairseq_llrnn.huggingface.combinations import ProcessorParts
from fairseq_llrnn.huggingface.constraints import (
    byte_automaton,
    grammar_bytes,
    is_our_grammar,
    term_automaton,
    words_automaton,
)
from fairseq_llrnn.huggingface.free_text import Tag
from fairseq_llrnn.huggingface.lifting import lift_canonical
from fairseq_llrnn.huggingface.parsers import parser_weights
from fairseq_llrnn.huggingface.regular_expressions import byte_node, parse_regex, rust_regex
from fairseq_llrnn.huggingface.required_terms import RequiredTerms
from fairseq_llrnn.huggingface.schemas import json_reader, lark_of_schema
from fairseq_llrnn.huggingface.token_texts import TokenTexts, token_texts
from fairseq_llrnn.huggingface.token_weights import TokenAutomaton, TokenWeights
from fairseq_llrnn.huggingface.token_words import dictionary_of, numbers_of_tokens
from fairseq_llrnn.huggingface.tools import TOOL_CALL, Tools, schema_of_calls
from fairseq_llrnn.huggingface.word_ngrams import WordNGramWeights
from fairseq_llrnn.ngrams.arpa import read_arpa
from fairseq_llrnn.ngrams.background import ngram_from_file
from fairseq_llrnn.ngrams.to_automaton import OTHER_UNK

OWN_REGEX = Limits(states=5_000, seconds=3.0, megabytes=300)  # of larger ones, llguidance is quicker


class MakesConstraints(ProcessorParts):
    """The constructors `from_…`."""

    @classmethod
    def from_regex(
        cls, pattern: str, tokenizer: Any, *, canonical: bool = False, limits: Limits = USUAL_LIMITS,
        after: str | Tag | None = None, unread: int | None = None, longest: int | None = None,
    ) -> Self:  # fmt: skip
        """Allow the texts that a regular expression matches as a whole.

        It becomes an automaton, or a grammar of llguidance (extra `hf`) if its automaton would be large.

        Args:
            pattern: in the syntax of Python's `re`, without lookaround, backreferences and \\b.
            tokenizer: a PreTrainedTokenizerFast with an end-of-sequence token.
            canonical: allow the tokenizer's own tokenisation of each text alone. The set of texts is finite.
            limits: of states, time and memory.
            after: a string or special token. The text begins with free text, the constraint comes after the string, and
                `longest` counts both. The text does not end before. A Tag: free text may follow, or the constraint is
                optional. None: the constraint comes first.
            unread, longest: as in the constructor.

        Raises:
            LimitError: it costs more than `limits` allow. DataError: no such expression, no text that the tokenizer
            can write, or too small a `longest`.
        """
        meter, (texts, tag) = Meter("from_regex", limits), _texts(tokenizer, "from_regex", after)
        tree = parse_regex(pattern, meter.name)
        own = meter if canonical else Meter(meter.name, Limits(*map(min, astuple(limits), astuple(OWN_REGEX))))
        try:
            return cls._lifted(byte_automaton(byte_node(tree), own), texts, canonical, own, unread, longest, tag)
        except LimitError:
            if canonical or importlib.util.find_spec("llguidance") is None:
                raise
        end = rust_regex(parse_regex(re.escape(_end(tag)), meter.name))  # one terminal, as terminals are greedy
        weights = parser_weights(f"start: /(?:{rust_regex(tree)}){end}/", "regular expression", texts, meter)
        return cls._from_weights(weights, texts.eos, unread, longest, texts=texts, tag=tag)

    @classmethod
    def from_json_schema(
        cls, schema: Any, tokenizer: Any, *, whitespace: str | None = None, strict: bool = True,
        limits: Limits = USUAL_LIMITS, after: str | Tag | None = None, unread: int | None = None,
        longest: int | None = None,
    ) -> Self:  # fmt: skip
        """Allow the texts that a JSON schema describes, by llguidance (extra `hf`).

        Unknown keywords are ignored, with a warning.

        Args:
            schema: as text, a dictionary, or a type that Pydantic reads: a model, a dataclass, a TypedDict, a list of
                these, the arguments of a function.
            whitespace: a regular expression of the blanks between JSON's parts. None: one space or none.
            strict: raise an error for keywords that llguidance does not support. False: ignore them, with a warning.
            tokenizer, limits, after, unread, longest: as in `from_regex`.

        Raises:
            OptionError: llguidance is not installed. DataError: no JSON schema, one with unsupported keywords, one that
            llguidance does not read within the limits, or too small a `longest`.
        """
        meter, (texts, tag) = Meter("from_json_schema", limits), _texts(tokenizer, "from_json_schema", after)
        grammar, steps = lark_of_schema(schema, whitespace, strict, meter.name)
        weights = parser_weights(f"start: {grammar}", "JSON schema", texts, meter, steps, end=_end(tag))
        read = json_reader(schema)
        return cls._from_weights(weights, texts.eos, unread, longest, texts=texts, tag=tag, read=read)

    @classmethod
    def from_tools(
        cls, tools: Tools, tokenizer: Any, *, whitespace: str | None = None, strict: bool = True,
        limits: Limits = USUAL_LIMITS, after: str | Tag | None = TOOL_CALL, unread: int | None = None,
        longest: int | None = None,
    ) -> Self:  # fmt: skip
        """Allow free text with calls of tools, `<tool_call>{"name": …, "arguments": …}</tool_call>`, by llguidance.

        A line break may come before and after the JSON. Arguments that a schema does not list are not allowed.

        Args:
            tools: the schema of the arguments by name, as in `from_json_schema`. Or the list that `apply_chat_template`
                takes: functions with type hints, or dictionaries with "name" and "parameters".
            after: Tag("<tool_call>", "</tool_call>") requires a call. None: the text is one call.
            tokenizer, whitespace, strict, limits, unread, longest: as in `from_json_schema`.

        Raises:
            OptionError, DataError: as `from_json_schema`, or no tools, or two of one name.
        """
        meter, (texts, tag) = Meter("from_tools", limits), _texts(tokenizer, "from_tools", after)
        schema, read = schema_of_calls(tools, meter.name)
        grammar, steps = lark_of_schema(schema, whitespace, strict, meter.name)
        grammar = f'start: "\\n"? call "\\n"?\ncall: {grammar}'
        weights = parser_weights(grammar, "JSON schema", texts, meter, steps, end=_end(tag))
        return cls._from_weights(weights, texts.eos, unread, longest, texts=texts, tag=tag, read=read)

    @classmethod
    def from_grammar(
        cls, grammar: str | Path, tokenizer: Any, *, separator: str = " ", canonical: bool = False,
        limits: Limits = USUAL_LIMITS, after: str | Tag | None = None, unread: int | None = None,
        longest: int | None = None,
    ) -> Self:  # fmt: skip
        """Allow the texts of a context-free grammar.

        Args:
            grammar: a file (Path) or text, in our format (`S -> "a" X "b"`, docs/guides/grammars.md) or in Lark's
                (`start: …`), which llguidance reads (extra `hf`).
            separator: what our format's words have between them. "" for a grammar of characters.
            tokenizer, canonical, limits, after, unread, longest: as in `from_regex`. A Lark grammar allows all
                tokenisations.

        Raises:
            OptionError: llguidance is not installed, or there is canonical=True with Lark.
            LimitError, DataError: as in `from_regex`.
        """
        if isinstance(grammar, str) and not re.search(r"[\n:]|->", grammar):  # each grammar has a rule
            grammar = Path(grammar)
        name = str(grammar) if isinstance(grammar, Path) else "from_grammar"
        meter, (texts, tag) = Meter(name, limits), _texts(tokenizer, name, after)
        text = "\n".join(line for _, line in iter_lines(grammar)) if isinstance(grammar, Path) else grammar
        if is_our_grammar(text):
            automaton = grammar_bytes(text, separator, name, meter)
            return cls._lifted(automaton, texts, canonical, meter, unread, longest, tag)
        if canonical:
            raise OptionError(f"{name}: canonical=True does not go with a Lark grammar; leave it out")
        weights = parser_weights(text, "Lark grammar", texts, meter, end=_end(tag))
        return cls._from_weights(weights, texts.eos, unread, longest, texts=texts, tag=tag)

    @classmethod
    def from_words(
        cls, words: Sequence[str], tokenizer: Any, *, separators: Sequence[str] = (" ",), canonical: bool = False,
        limits: Limits = USUAL_LIMITS, after: str | Tag | None = None, unread: int | None = None,
        longest: int | None = None,
    ) -> Self:  # fmt: skip
        """Allow texts of words from a list, with separators between them.

        Args:
            separators: any of these stands between two words. None of them, (): the text is one of the words.
            tokenizer, canonical, limits, after, unread, longest: as in `from_regex`.

        Raises:
            LimitError, DataError: as in `from_regex`.
        """
        meter, (texts, tag) = Meter("from_words", limits), _texts(tokenizer, "from_words", after)
        automaton = words_automaton(words, separators, meter)
        return cls._lifted(automaton, texts, canonical, meter, unread, longest, tag)

    @classmethod
    def from_terms(
        cls, terms: Sequence[str | Sequence[str]], tokenizer: Any, *, limits: Limits = USUAL_LIMITS,
        after: str | Tag | None = None, unread: int | None = None, longest: int | None = None,
    ) -> Self:  # fmt: skip
        """Require terms: the text has each of them at least once, in one of its forms, as words of their own.

        Args:
            terms: each a form, or a list of forms. They may have several tokens, and are compared as the tokenizer
                writes them (e.g. in lower case).
            tokenizer, limits, after, unread, longest: as in `from_regex`. Near `longest`, tokens are taken away after
                which the terms that are left may not fit in any more, one after the other.

        Raises:
            LimitError, DataError: as in `from_regex`, or no terms, or an empty form.
        """
        meter, (texts, tag) = Meter("from_terms", limits), _texts(tokenizer, "from_terms", after, has_end=False)
        if isinstance(terms, str):
            raise DataError(f"from_terms: expected a list of terms, found the text {terms!r:.60}; put it into a list")
        groups: list[list[Any]] = [
            list(term) if isinstance(term, list | tuple | set) else [term] for term in terms
        ]
        if not groups or any(not forms or any(form == "" or str(form).isspace() for form in forms) for forms in groups):
            raise DataError("from_terms: expected terms with a form each, found none; give at least one form")
        wrong = [form for forms in groups for form in forms if not utf8_size(form)]
        if wrong:
            raise DataError(f"from_terms: expected forms in UTF-8, found {wrong[0]!r:.60}; change it")
        parts = []
        for forms in groups:
            automaton = term_automaton([texts.comparable(form, meter.name) for form in forms], meter)
            parts.append(TokenAutomaton.of_set(automaton, texts, meter))
        return cls._from_weights(RequiredTerms(parts, texts.eos), texts.eos, unread, longest, texts=texts, tag=tag)

    @classmethod
    def from_ngram(
        cls, arpa: Path | str, tokenizer: Any, weight: float = 1.0, *, unit: str = "tokens",
        after: str | Tag | None = None, unread: int | None = None, longest: int | None = None,
    ) -> Self:  # fmt: skip
        """Multiply by an n-gram model: b = p_ngram^weight.

        Args:
            arpa: a file in ARPA format.
            weight: λ > 0 of log p + λ log p_ngram.
            unit: what the file's words are: "tokens" as `tokenizer.convert_ids_to_tokens` writes them, or "words" that
                whitespace separates in a text. Other words of a text are <unk>, and the beginning of a word weighs what
                its ends weigh together (word_ngrams.py).
            tokenizer, after, unread, longest: as in `from_regex`.

        Raises:
            DataError: a bad file, one without <unk>, or one of other words.
            OptionError: a weight that is not above 0, or another unit.
        """
        if not 0 < weight < float("inf"):
            raise OptionError(f"from_ngram: expected a weight above 0, found {weight}")
        check_choice("from_ngram: unit", unit, ("tokens", "words"))
        texts, tag = _texts(tokenizer, "from_ngram", after, has_end=False)
        if unit == "words":
            symbols = [*SPECIALS, *(word for word in read_arpa(arpa).words if word not in (*SPECIALS, OTHER_UNK))]
        else:
            symbols = dictionary_of(tokenizer)
        model = ngram_from_file(arpa, WordList(tuple(symbols), np.zeros(len(symbols), dtype=np.int64)))

        def background(weight: float) -> BoundBackground:
            log_weights, automaton = torch.from_numpy(model.log_weights * weight), model.automaton.tempered(1 / weight)
            return AutomatonBackground(torch.zeros(len(symbols), dtype=torch.long), 1, log_weights, automaton).bind()

        weights: TokenWeights
        if unit == "words":
            weights = WordNGramWeights(background(1.0), symbols, texts, weight)
        else:
            words = numbers_of_tokens(tokenizer, symbols)
            weights = BackgroundWeights(background(weight), words, symbols.index(EOS), symbols.index(PAD))
        return cls._from_weights(weights, texts.eos, unread, longest, texts=texts, tag=tag)

    @classmethod
    def _lifted(
        cls, automaton: ByteAutomaton, texts: TokenTexts, canonical: bool, meter: Meter, unread: int | None,
        longest: int | None, tag: Tag | None,
    ) -> Self:  # fmt: skip
        if end := _end(tag):
            automaton = automaton.before(end.encode(), meter)
        if canonical:
            weights = TokenAutomaton(lift_canonical(automaton, texts, meter), texts.eos)
        else:
            weights = TokenAutomaton.of_set(automaton, texts, meter)
        return cls._from_weights(weights, texts.eos, unread, longest, texts=texts, tag=tag)


def _texts(
    tokenizer: Any, name: str, after: str | Tag | None, has_end: bool = True
) -> tuple[TokenTexts, Tag | None]:
    """Return the texts of tokens where the constraint begins, and the tag of `after`."""
    try:
        texts, tag = token_texts(tokenizer), after if after is None or isinstance(after, Tag) else Tag(after)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    if tag is None:
        return texts, None
    if tag.end is not None and not has_end:
        raise DataError(f"{name}: expected a tag without an end, found {tag}; leave the end out")
    return texts.spelling(_end(tag)), tag


def _end(tag: Tag | None) -> str:
    return "" if tag is None or tag.end is None else tag.end
