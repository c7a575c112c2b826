"""Convert RNNLG's files to a bitext of acts and sentences, with the inputs of the prior.

    act        inform name @name_red_door_cafe goodformeal @goodformeal_lunch kidsallowed=yes
    sentence   @name_red_door_cafe is good for @goodformeal_lunch and allows #kid -s

A value is one token on both sides, which begins with `@` and the slot's name: evidence by the patterns in
patterns.toml. Words about a slot with yes or no begin with `#`: evidence by the table mapping.tsv (`kidsallowed=yes`
has `#kid` and `#child`). Without evidence both are forbidden (`--set evidence.unsupported.urls=0`: for the rules of
evidence they are @names and #tags), so that no sentence can contain a value, or a word about a slot, that its act does
not have.

Files in the folder OUT:

    train valid test  .act .sent      pairs; for training and validation only those without more than their act has
    valid test        .acts           the different acts of a part, to generate sentences for
    counted.sent                      the training sentences without their values: to count words
    dict.act.txt dict.sent.txt        dictionaries; both have the values of all acts, the *ontology*
    patterns.toml mapping.tsv         evidence
    top-words.act top-words.sent      number of words with an indicator feature: all except values
    plain/                            training pairs without evidence words: for lexical translations of the others
    delexicalised/                    the same for a plain softmax: `@name_1` for the first name, and so on
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from dialog_acts import ASKED, SPECIAL, Act, read_examples
from dialog_scores import KEYWORDS
from dialog_words import MARK, mark, normalise, token

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import whole_file

SPLITS = ("train", "valid", "test")
TAG = "#"  # begins a word that speaks of a slot of KEYWORDS
ORDINARY = 0.01  # share of the sentences
SLOT_OF = {word: slot for slot, words in KEYWORDS.items() for word in words}


def find(folder: Path, split: str) -> Path:
    """Return a split's file. Raises DataError if there is none."""
    for name in (f"{split}.json.gz", f"{split}.json"):
        if (folder / name).exists():
            return folder / name
    raise DataError(
        f"{folder}: expected {split}.json of RNNLG, or {split}.json.gz, found neither; is it the right folder?"
    )


def source_of(act: Act) -> list[str]:
    """Return the tokens of an act."""
    words = [act.kind]
    texts = set(act.texts)
    for slot, value in act.pairs:
        words += [slot, token(slot, value)] if (slot, value) in texts else [f"{slot}={value.replace(' ', '_')}"]
    return words


def target_of(act: Act, sentence: str) -> list[str]:
    """Return the tokens of a raw sentence for an act."""
    return [f"{TAG}{word}" if word in SLOT_OF else word for word in mark(normalise(sentence), act).split()]


def read_back(words: Iterable[str]) -> str:
    """Return a sentence in the form of dialog_words.mark, from tokens that a model wrote."""
    return " ".join(word.removeprefix(TAG) for word in words)


def different(acts: Iterable[Act], delexicalised: bool = False) -> list[list[str]]:
    """Return the different sources of the acts, in the order of their first occurrence."""
    make = delexicalised_source if delexicalised else source_of
    return [list(source) for source in dict.fromkeys(tuple(make(act)) for act in acts)]


def offered(act: Act) -> set[str]:
    """Return all tokens of a sentence for the act that need evidence."""
    keywords = {f"{TAG}{word}" for slot, _ in act.pairs for word in KEYWORDS.get(slot, ())}
    return keywords | {token(*pair) for pair in act.texts}


def is_supported(act: Act, words: Sequence[str]) -> bool:
    """Return whether all words that need evidence have it, so that no slot outside the act is mentioned."""
    return {word for word in words if word[0] in (MARK, TAG)} <= offered(act)


class Ontology:
    """All values of the acts, and their parts, as words: finds values in a sentence that are no slot of its act.

    An ordinary word that is also a value is excluded (`range`, in RNNLG): one that occurs in more than a hundredth of
    the sentences without being the value of a slot.
    """

    def __init__(self, acts: Iterable[Act], sentences: Sequence[Sequence[str]]) -> None:
        self.slots: dict[str, set[str]] = {}  # value -> the slots whose value it is
        for slot, value in {pair for act in acts for pair in act.texts}:
            for part in (value, *value.replace(" or ", " and ").split(" and ")):
                self.slots.setdefault(part, set()).add(slot)
        texts = [f" {' '.join(words)} " for words in sentences]
        ordinary = [v for v in self.slots if sum(f" {v} " in text for text in texts) > ORDINARY * len(texts)]
        self.slots = {value: slots for value, slots in self.slots.items() if value not in ordinary}

    def unmarked(self, act: Act, words: Sequence[str]) -> list[str]:
        """Return values that a sentence contains without their token, except those of a slot that the act asks for."""
        text = f" {' '.join(words)} "
        asked = {slot for slot, value in act.pairs if value == ASKED}
        return [value for value, slots in self.slots.items() if f" {value} " in text and not slots <= asked]


def prepare(data: Path, out: Path) -> dict[str, int]:
    """Write the files of one domain, and return the numbers of pairs of each part, used and left out."""
    out.mkdir(parents=True, exist_ok=True)
    examples = {split: read_examples(find(data, split)) for split in SPLITS}
    whole = {split: [example.act for example in examples[split]] for split in SPLITS}
    acts = list(itertools.chain.from_iterable(whole.values()))
    ontology = Ontology(acts, [target_of(example.act, example.sentence) for example in examples["train"]])
    facts: dict[str, int] = {}
    kept: dict[str, list[tuple[Act, list[str]]]] = {}
    for split in SPLITS:
        pairs = [(example.act, target_of(example.act, example.sentence)) for example in examples[split]]
        kept[split] = [
            pair for pair in pairs if split == "test" or (is_supported(*pair) and not ontology.unmarked(*pair))
        ]
        facts |= {split: len(kept[split]), f"{split} left out": len(pairs) - len(kept[split])}
        _write(out / f"{split}.act", (source_of(act) for act, _ in kept[split]))
        _write(out / f"{split}.sent", (words for _, words in kept[split]))
        if split != "train":
            _write(out / f"{split}.acts", different(whole[split]))
    values = sorted({token(*pair) for act in acts for pair in act.texts})
    spoken_of = sorted({slot for act in acts for slot, _ in act.pairs} & KEYWORDS.keys())
    sentences = [words for _, words in kept["train"]]
    ordinary = Counter(word for words in sentences for word in words if not word.startswith(MARK))
    _write_dictionary(out / "dict.act.txt", Counter(w for act, _ in kept["train"] for w in source_of(act)), values)
    _write_dictionary(out / "dict.sent.txt", Counter(w for words in sentences for w in words), values)
    _write(out / "counted.sent", ([word for word in words if not word.startswith(MARK)] for words in sentences))
    _write(out / "top-words.act", [[str(len({word for act, _ in kept["train"] for word in _plain(source_of(act))}))]])
    _write(out / "top-words.sent", [[str(len(ordinary))]])
    slots = sorted({slot for act in acts for slot, _ in act.texts})
    _write(out / "patterns.toml", [["[patterns]"], *([f"{slot} = '{MARK}{slot}_.*'"] for slot in slots)])
    _write(out / "mapping.tsv", _mapping(spoken_of, {word for words in sentences for word in words}))
    (out / "plain").mkdir(exist_ok=True)
    _write(out / "plain" / "train.act", (_plain(source_of(act)) for act, _ in kept["train"]))
    _write(out / "plain" / "train.sent", (_plain(words) for words in sentences))
    _write_delexicalised(out / "delexicalised", kept, whole)
    return facts | {"values": len(values), "slots": len(slots), "words": len(ordinary)}


def _mapping(slots: Iterable[str], known: Container[str]) -> list[list[str]]:
    """Return the words for slots of KEYWORDS, whatever their value, that occur in training."""
    tags = {slot: [TAG + word for word in KEYWORDS[slot] if TAG + word in known] for slot in slots}
    values = [*sorted(set(SPECIAL.values())), ASKED]
    return [[f"{slot}={value}\t{' '.join(words)}"] for slot, words in tags.items() if words for value in values]


def _plain(words: Iterable[str]) -> list[str]:
    return [word for word in words if word[0] not in (MARK, TAG)]


def _write(path: Path, lines: Iterable[Sequence[str]]) -> None:
    with whole_file(path) as file:
        file.writelines(f"{' '.join(words)}\n" for words in lines)


def _write_dictionary(path: Path, counts: Counter[str], more: Iterable[str]) -> None:
    """Write words by frequency, then those that the training text lacks, with the count 1."""
    with whole_file(path) as file:
        known = sorted(counts, key=lambda word: (-counts[word], word))
        file.writelines(f"{word} {counts[word]}\n" for word in known)
        file.writelines(f"{word} 1\n" for word in more if word not in counts)


# ---- for a plain softmax ---------------------------------------------------------------------------------------------


def numbered(act: Act) -> dict[str, str]:
    """Map the token of a value to its placeholder: `@area_1`, `@area_2` in the order of the act."""
    seen: Counter[str] = Counter()
    names: dict[str, str] = {}
    for slot, value in act.texts:
        if token(slot, value) not in names:
            seen[slot] += 1
            names[token(slot, value)] = f"{MARK}{slot}_{seen[slot]}"
    return names


def delexicalised_source(act: Act) -> list[str]:
    """Return the tokens of an act without its values."""
    names = numbered(act)
    return [names.get(word, word) for word in source_of(act)]


def _write_delexicalised(
    folder: Path, kept: Mapping[str, Sequence[tuple[Act, list[str]]]], whole: Mapping[str, Sequence[Act]]
) -> None:
    folder.mkdir(exist_ok=True)
    for split, pairs in kept.items():
        _write(folder / f"{split}.act", (delexicalised_source(act) for act, _ in pairs))
        names = [numbered(act) for act, _ in pairs]
        lines = ([of.get(word, word) for word in words] for of, (_, words) in zip(names, pairs, strict=True))
        _write(folder / f"{split}.sent", lines)
        if split != "train":
            _write(folder / f"{split}.acts", different(whole[split], delexicalised=True))
