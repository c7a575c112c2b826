"""Rare words as annotated unknown ones, and back again (Luong, Sutskever, Le, Vinyals & Zaremba 2015, §3).

A text keeps its N most frequent words; every other one is unknown. What stands in its place says where it comes from,
by the alignment of the training text, in which a target word at place j comes from at most one source word, at place i:

    copyable        <unk1>, <unk2>, … number the different unknown words of a source; an unknown target word has the
                    number of its source word, or is <unk-null> where that is known, or there is none
    positional      an unknown target word is <unkpos+d>, d = j − i, or <unkpos-null> where there is no source word, or
                    none at most MOST_AWAY places away; unknown source words are <unk>
    positional-all  behind every target word stands <pos+d> or <pos-null>; unknown words of both sides are <unk>

`restored` replaces every annotated unknown word of a translation by the most probable translation of its source word,
and by the source word itself where no translation of it is known. Places count words; annotations are none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from fairseq_llrnn.features.dictionary import SPECIALS, UNK

SCHEMES = ("copyable", "positional", "positional-all")
MOST_AWAY = 7
ANNOTATION = re.compile(r"<(?P<kind>unk|unkpos|pos)(?P<value>[+-]?[0-9]{1,6}|-null)>")
NULL = "-null"


def frequent_words(lines: Iterable[Sequence[str]], most: int) -> frozenset[str]:
    """The `most` most frequent words of a text, of equals the first ones by their letters.

    What looks like an annotation, or like a special symbol of fairseq, is never one of them.
    """
    counts = Counter(word for line in lines for word in line)
    words = [word for word in counts if word not in SPECIALS and ANNOTATION.fullmatch(word) is None]
    return frozenset(sorted(words, key=lambda word: (-counts[word], word))[:most])


def numbered(source: Sequence[str], vocabulary: Collection[str]) -> dict[str, int]:
    """The different unknown words of a source sentence, from 1 in the order in which they come."""
    unknown = dict.fromkeys(word for word in source if word not in vocabulary)
    return {word: number for number, word in enumerate(unknown, 1)}


def annotated_source(source: Sequence[str], vocabulary: Collection[str], scheme: str) -> list[str]:
    """A source sentence without unknown words."""
    if scheme == "copyable":
        numbers = numbered(source, vocabulary)
        return [word if word in vocabulary else f"<unk{numbers[word]}>" for word in source]
    return [word if word in vocabulary else UNK for word in source]


def annotated_target(
    target: Sequence[str], vocabulary: Collection[str], source: Sequence[str], source_vocabulary: Collection[str],
    comes_from: Mapping[int, int], scheme: str,
) -> list[str]:  # fmt: skip
    """A target sentence without unknown words.

    Args:
        comes_from: the place of the source word, by that of the target word; those that come from none are absent.
    """
    words = []
    numbers = numbered(source, source_vocabulary)
    for j, word in enumerate(target):
        i = comes_from.get(j)
        if scheme == "copyable":
            number = None if i is None else numbers.get(source[i])
            words.append(word if word in vocabulary else f"<unk{NULL if number is None else number}>")
            continue
        distance = NULL if i is None or abs(j - i) > MOST_AWAY else f"{j - i:+d}"
        if scheme == "positional":
            words.append(word if word in vocabulary else f"<unkpos{distance}>")
        else:
            words += [word if word in vocabulary else UNK, f"<pos{distance}>"]
    return words


def restored(
    output: Sequence[str], source: Sequence[str], source_vocabulary: Collection[str],
    translations: Mapping[str, Sequence[str]],
) -> list[str]:  # fmt: skip
    """A translation without annotations. An unknown word that comes from no word of the source stays <unk>.

    Args:
        output: a model's, annotated by any of the schemes. source: as it was before it was annotated.
    """
    by_number = {number: word for word, number in numbered(source, source_vocabulary).items()}
    words: list[Sequence[str]] = []
    for token in output:
        match = ANNOTATION.fullmatch(token)
        kind, value = (match["kind"], match["value"]) if match else ("", "")
        if kind == "pos":
            if words and words[-1] == (UNK,):
                words[-1] = _translated(_at(source, len(words) - 1, value), translations)
        elif kind == "unkpos":
            words.append(_translated(_at(source, len(words), value), translations))
        elif kind == "unk":
            words.append(_translated(by_number.get(int(value)) if value != NULL else None, translations))
        else:
            words.append((token,))
    return [word for one in words for word in one]


def _at(source: Sequence[str], j: int, distance: str) -> str | None:
    """The source word that the target word at place j comes from."""
    i = -1 if distance == NULL else j - int(distance)
    return source[i] if 0 <= i < len(source) else None


def _translated(word: str | None, translations: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return (UNK,) if word is None else translations.get(word, (word,))
