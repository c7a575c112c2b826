"""Rare words as annotated unknown ones, and their restoration (Luong, Sutskever, Le, Vinyals & Zaremba 2015, §3).

A text keeps its N most frequent words, and every other word is unknown. Its replacement marks the source word, by the
alignment of the training text, in which a target word at place j comes from at most one source word, at place i:

    copyable        <unk1>, <unk2>, … number the distinct unknown words of a source; an unknown target word has the
                    number of its source word, or is <unk-null> if the source word is known, or if there is none
    positional      an unknown target word is <unkpos+d>, d = j − i, or <unkpos-null> if there is no source word within
                    MOST_AWAY places; unknown source words are <unk>
    positional-all  every target word is followed by <pos+d> or <pos-null>; unknown words of both sides are <unk>

`restored` replaces every annotated unknown word of a translation by the most probable translation of its source word,
or by the source word itself if no translation is known. Places count words, without annotations.
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
    """Return the `most` most frequent words of a text, ties alphabetically, except for annotations and special symbols.
    """
    counts = Counter(word for line in lines for word in line)
    words = [word for word in counts if word not in SPECIALS and ANNOTATION.fullmatch(word) is None]
    return frozenset(sorted(words, key=lambda word: (-counts[word], word))[:most])


def numbered(source: Sequence[str], vocabulary: Collection[str]) -> dict[str, int]:
    """Return numbers of the distinct unknown words of a source sentence, from 1 in order of occurrence."""
    unknown = dict.fromkeys(word for word in source if word not in vocabulary)
    return {word: number for number, word in enumerate(unknown, 1)}


def annotated_source(source: Sequence[str], vocabulary: Collection[str], scheme: str) -> list[str]:
    """Return a source sentence with unknown words replaced."""
    if scheme == "copyable":
        numbers = numbered(source, vocabulary)
        return [word if word in vocabulary else f"<unk{numbers[word]}>" for word in source]
    return [word if word in vocabulary else UNK for word in source]


def annotated_target(
    target: Sequence[str], vocabulary: Collection[str], source: Sequence[str], source_vocabulary: Collection[str],
    comes_from: Mapping[int, int], scheme: str,
) -> list[str]:  # fmt: skip
    """Return a target sentence with unknown words replaced.

    Args:
        comes_from: the place of the source word, by the place of the target word, if there is one.
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
    """Return a translation without annotations. An unknown word without a source word stays <unk>.

    Args:
        output: of a model, annotated by any of the schemes.
        source: before annotation.
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
    return [word for translation in words for word in translation]


def _at(source: Sequence[str], j: int, distance: str) -> str | None:
    """Return the source word of the target word at place j."""
    i = -1 if distance == NULL else j - int(distance)
    return source[i] if 0 <= i < len(source) else None


def _translated(word: str | None, translations: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return (UNK,) if word is None else translations.get(word, (word,))
