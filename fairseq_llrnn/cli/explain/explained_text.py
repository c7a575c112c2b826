"""Format an explained sentence as a table, or as one JSON object."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.cli.tables import cut, fit_left, labelled, plural, printable, probability

if TYPE_CHECKING:  # these import torch, which is slow
    from fairseq_llrnn.explain.explanation import Explanation
    from fairseq_llrnn.explain.source_terms import OfferedSlot, Places
    from fairseq_llrnn.output.normalisers import Detail

END = "</s>"
WORD_WIDTH = 34
HEADER = f"{'word':<{WORD_WIDTH}} {'p':>9} {'nats':>7} {'rank':>8} {'background':>12} {'log p/b':>9}"

LEGEND = """p: probability of the word. nats: -log p. rank: 1 for the most probable word.
background: the word's weight b before the network. log p/b: contribution of the network.
More: llrnn explain --help"""


@dataclass(frozen=True)
class Source:
    """The sentence to translate. Its places count from 0. The last place is the end of the sentence."""

    words: Sequence[str]
    tokens: Sequence[str]  # dictionary entry of each word

    def word(self, place: int) -> str:
        return self.words[place] if place < len(self.words) else END

    def token(self, place: int) -> str:
        return self.tokens[place] if place < len(self.tokens) else END

    def shown(self, place: int) -> str:
        """Return the word, with its number if it is repeated, and with `<unk>` if the model read that."""
        word, token = self.word(place), self.token(place)
        number = f" #{place + 1}" if list(self.words).count(word) > 1 else ""
        return cut(printable(word), WORD_WIDTH) + number + ("" if word == token else f" ({token})")


def _shown(word: str | None, token: str) -> str:
    """Return the word in its column. `<unk>` is never cut off."""
    if word is None or word == token:
        return fit_left(printable(token), WORD_WIDTH)
    mark = f" ({token})"
    return fit_left(cut(printable(word), WORD_WIDTH - len(mark)) + mark, WORD_WIDTH)


def totals(tokens: int, nats: float, sentences: int) -> str:
    """Return the sums of some sentences. `tokens` and `nats` include the sentence ends."""
    words = tokens - sentences
    per_word = nats / tokens
    end = "the end of sentence" if sentences == 1 else f"{sentences:,} ends of sentence"
    return f"{plural(words, 'word')} and {end}: {per_word:.4f} nats per word, perplexity {_exp(per_word)}"


def _exp(nats: float) -> str:
    return f"{math.exp(nats):,.2f}" if nats < 700 else "infinite"


def as_table(words: Sequence[str], explained: Sequence["Explanation"], top: int, source: Source | None = None) -> str:
    """Return the explanation of a sentence, word by word."""
    lines = [HEADER]
    for word, e in zip([*words, None], explained, strict=False):
        p, b = math.exp(e.log_prob), math.exp(e.log_background)
        log_ratio = "forbidden" if b == 0.0 else f"{e.log_prob - e.log_background:+.2f}"
        lines.append(
            f"{_shown(word, e.token)} {probability(p):>9} {-e.log_prob:>7.3f} {e.rank:>8,} "
            f"{probability(b):>12} {log_ratio:>9}"
        )
        lines += [*_source_lines(e, source), *_slot_lines(e, source), *map(_detail_line, e.details)]
        features = [f"{value:+.2f} {printable(name)}" for name, value in e.own_features[:top]]
        rest = math.fsum(value for _, value in e.own_features[top:])
        if len(e.own_features) > top:
            features.append(f"{rest:+.2f} in {len(e.own_features) - top} more")
        lines.append(labelled("predicted", (f"{printable(w)} {probability(math.exp(v))}" for w, v in e.predictions)))
        if e.expected:
            changes = (f"{printable(n)} {probability(b)}→{probability(p)}" for n, b, p in e.expected)
            lines.append(labelled("expected", changes))
        lines.append(labelled("its features", [*features, f"{e.normaliser:+.2f} normaliser"]))
        strongest = e.strongest or e.strongest_words
        lines.append(labelled("strongest", (f"{value:+.2f} {printable(name)}" for name, value in strongest)))
    total = -math.fsum(e.log_prob for e in explained)
    return "\n".join([*lines, "", totals(len(explained), total, 1)])


def as_json(words: Sequence[str], explained: Sequence["Explanation"], source: Source | None = None) -> dict[str, Any]:
    """Return the explanation of a sentence as JSON values. Infinite numbers (of a forbidden word) are null."""
    total = -math.fsum(e.log_prob for e in explained)
    per_word = total / len(explained)
    return {
        **({} if source is None else {"source": " ".join(source.words)}),
        "sentence": " ".join(words),
        "words": [
            {
                "word": e.token if word is None else word,
                "token": e.token,
                "p": math.exp(e.log_prob),
                "nats": _finite(-e.log_prob),
                "rank": e.rank,
                "background": math.exp(e.log_background),
                "predicted": [{"word": w, "p": math.exp(v)} for w, v in e.predictions],
                "expected": {name: {"background": b, "model": p} for name, b, p in e.expected},
                "features": dict(e.own_features),
                "normaliser": e.normaliser,
                "strongest": dict(e.strongest),
                "strongest_words": dict(e.strongest_words),
                **_source_facts(e, source),
                **_slot_facts(e, source),
                **{detail.name: detail.facts for detail in e.details},
            }
            for word, e in zip([*words, None], explained, strict=False)
        ],
        "tokens": len(explained),
        "nats_per_word": _finite(per_word),
        "perplexity": math.exp(per_word) if per_word < 700 else None,
    }


def _source_lines(e: "Explanation", source: Source | None) -> list[str]:
    """Return the lines of attention weights and of translations of source words, if there are any."""
    if e.source is None or source is None:
        return []
    lines = []
    if e.source.attention is not None:
        weights = (f"{source.shown(place)} {probability(value)}" for place, value in e.source.attention)
        lines.append(labelled("attends to", weights))
    if e.source.translations is not None:
        translations = [f"{source.shown(place)} {probability(value)}" for place, value in e.source.translations]
        before, after = (probability(math.exp(value)) for value in (e.source.log_background, e.log_background))
        lines.append(labelled("evidence", [*(translations or ["none"]), f"background {before}→{after}"]))
    return lines


def _detail_line(detail: "Detail") -> str:
    shown = ((printable(x) if isinstance(x, str) else probability(x) for x in item) for item in detail.items)
    return labelled(detail.label, map("".join, shown))


def _source_facts(e: "Explanation", source: Source | None) -> dict[str, Any]:
    """Return the JSON values of `_source_lines`, or null if the model or its prior lacks them."""
    if e.source is None or source is None:
        return {}

    def listed(places: "Places | None", value_name: str) -> list[dict[str, Any]] | None:
        if places is None:
            return None
        return [
            {"word": source.word(s), "token": source.token(s), "position": s + 1, value_name: value}
            for s, value in places
        ]

    return {
        "attention": listed(e.source.attention, "weight"),
        "evidence": listed(e.source.translations, "p"),
        "background_without_source": math.exp(e.source.log_background),
    }


def _slot_lines(e: "Explanation", source: Source | None) -> list[str]:
    """Return the lines of the word's slot and of all slots of the source, if it has any."""
    if not e.slots or source is None:
        return []
    lines = []
    if e.slot is not None:
        first, *others = [source.shown(place) for place in e.slot.places] or ["no word of the source"]
        lines.append(labelled("slot", [f"{e.slot.kind}: {first}", *others]))
    offered = []
    for slot in e.slots:
        before, after = (probability(math.exp(value)) for value in (slot.log_background, slot.log_prob))
        places = ",".join(f"#{place + 1}" for place in slot.places) + " " * bool(slot.places)  # a term may have none
        offered.append(f"{cut(printable(slot.string), WORD_WIDTH)} {places}{slot.kind} {before}→{after}")
    return [*lines, labelled("slots", offered)]


def _slot_facts(e: "Explanation", source: Source | None) -> dict[str, Any]:
    """Return the JSON values of `_slot_lines`, or null if the prior has no evidence, or the word is no slot."""
    if source is None:
        return {}

    def facts(slot: "OfferedSlot") -> dict[str, Any]:
        return {
            "string": slot.string,
            "kind": slot.kind,
            "words": [source.word(place) for place in slot.places],
            "positions": [place + 1 for place in slot.places],
            "background": math.exp(slot.log_background),
            "p": math.exp(slot.log_prob),
        }

    return {
        "slot": None if e.slot is None else facts(e.slot),
        "slots": None if e.slots is None else [facts(slot) for slot in e.slots],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
