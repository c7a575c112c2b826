"""Format priors and words for `llrnn show`, and look up the words that a user names."""

import difflib
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.cli.tables import (
    WIDTH,
    cut,
    feature_items,
    labelled,
    note,
    percent,
    plural,
    printable,
    probability,
)
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.feature_table import AUTO
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.files.text_lines import in_form
from fairseq_llrnn.lexicon.casing import case_key

if TYPE_CHECKING:
    from fairseq_llrnn.prior.prior import Prior


def summary_text(summary: dict[str, Any]) -> str:
    """Format a prior as a whole."""
    background = summary["background"]
    entropy = background["entropy"]
    words = summary["counts"]["words"]
    alone, largest = summary["words_alone_in_their_signature"], summary["largest_signatures"]
    signature = f"signature   {printable(summary['signature'])}"
    recipe = [f"  {printable(line)}" for line in summary["recipe"].splitlines() if line and not line.startswith("#")]
    lines = [f"prior {summary['prior']}", signature, *(["", "recipe", *recipe] if recipe else []), "", "settings"]
    lines += [
        f"  {name.replace('_', ' '):<18} {_setting(name, value)}"
        for name, value in summary["settings"].items()
        if _in_use(name, summary["settings"])
    ]
    lines += ["", "counts"]
    lines += [f"  {name:<18} {value:>10,}" for name, value in summary["counts"].items()]
    for key, title in (("groups", "feature groups"), ("input_groups", "feature groups that the network reads (ψ)")):
        if key in summary:
            lines += ["", f"{title}", f"  {'':<18} {'features':>10} {'words':>10}"]
            lines += [
                f"  {printable(group):<18} {size['features']:>10,} {size['words']:>10,}"
                for group, size in summary[key].items()
            ]
    background_line = f"background  {printable(background['kind'])}"  # never cut, like the recipe, for copying
    lines += [
        "",
        background_line,
        f"            {plural(background['possible_words'], 'possible next word')} of its root b₀, "
        f"entropy {entropy:.3f} nats (perplexity {math.exp(entropy):,.1f})",
        *_beginning_lines(background),
        *_parts_lines(summary["parts"]),
        "",
        f"signatures  {summary['counts']['output signatures']:,} for {plural(words, 'word')}; "
        f"{plural(alone, 'signature has', 'signatures have')} one word" + (". The largest:" if largest else ""),
    ]
    if largest:
        lines.append(f"  {'words':>10} {'root b₀':>11} {'number':>7}  features, and the most probable words")
    for row in largest:
        mass = percent(row["mass"])
        features = "  ".join(feature_items(sorted(row["features"].items())))
        members = [printable(member["word"]) for member in row["members"]]
        more = [] if len(members) == row["words"] else ["…"]
        lines.append(f"  {row['words']:>10,} {mass:>11} {row['signature']:>7}  {features}")
        lines.append(" " * 34 + ", ".join(members + more))
    whole = {background_line, signature, *recipe}
    return "\n".join(line if line in whole else cut(line, WIDTH) for line in lines)


def _parts_lines(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Format the parts in their order, each with its description."""
    lines = [""] if parts else []
    for i, part in enumerate(parts):
        label = f"{'' if i else 'parts':<11} {part['part']}"
        lines += labelled(label, map(printable, part["lines"]), indent=0, label_width=30, gap="; ").split("\n")
    return lines


def _in_use(name: str, settings: dict[str, Any]) -> bool:
    """Return whether a setting has an effect: only a unigram is smoothed, and only additive smoothing has a
    pseudo-count.
    """
    if name == "smoothing":
        return str(settings.get("background")).startswith("unigram")
    if name == "pieces":
        return settings[name] is not None
    if name == "identity_floor":
        return AUTO in (settings.get("top_words"), settings.get("input_top_words"))
    return name != "pseudo_count" or (_in_use("smoothing", settings) and settings.get("smoothing") == "additive")


def _setting(name: str, value: Any) -> str:
    if value is None:
        return "all" if name == "features" else "as φ" if name.startswith("input") else "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def word_text(word: dict[str, Any]) -> str:
    """Format a word of the dictionary."""
    features, guessed = word["features"].items(), frozenset(word["guessed"])
    analysed = feature_items([entry for entry in features if entry[0] not in guessed])
    lines = [printable(word["word"]), labelled("features", analysed or ["none"])]
    if guessed:
        lines.append(labelled("guessed", feature_items([entry for entry in features if entry[0] in guessed])))
    if "input_features" in word:
        lines.append(labelled("as input", feature_items(list(word["input_features"].items())) or ["none"]))
        lines.append(labelled("input σ", [_sharing(word["input_signature"], word["input_signature_size"])]))
    lines.append(labelled("signature", [_sharing(word["signature"], word["signature_size"])]))
    if word["signature_size"] > 1:
        shown = [f"{printable(m['word'])} {_share_text(m['share'])}".rstrip() for m in word["members"]]
        more = word["signature_size"] - len(shown)
        lines.append(labelled("its words", shown + ([f"… {more:,} more"] if more else [])))
    if word["forbidden"]:
        lines.append(labelled("root b₀", ["0: it is forbidden as the next word"]))
    else:
        lines.append(
            labelled(
                "root b₀",
                [
                    f"{probability(word['background'])}, which is {_share_text(word['share'])} of its signature's "
                    f"{probability(word['signature_mass'])}"
                ],
            )
        )
    return "\n".join([*lines, *_fact_lines(word["parts"])])


def _share_text(share: float | None) -> str:
    return "" if share is None else percent(share)


def _sharing(signature: int, size: int) -> str:
    return f"{signature}, of this word only" if size == 1 else f"{signature}, shared by {size:,} words"


def _beginning_lines(background: Mapping[str, Any]) -> list[str]:
    """Format the beginnings of sentences of the background."""
    if "start" not in background:
        return []
    shown = [f"{printable(row['word'])} {percent(row['probability'])}" for row in background["start"]]
    example = " ".join(map(printable, background["example"])) or "nothing"
    lines = [f"            a sentence begins with {', '.join(shown)}"]
    lines.append(f"            and goes on, for example, as: {example}")
    if background["shortest"] > 0:
        lines.append(f"            the shortest has {plural(background['shortest'], 'word')}")
    return lines


def source_word_text(word: Mapping[str, Any]) -> str:
    """Format a source word."""
    return "\n".join([printable(word["source"]), *_fact_lines(word["parts"])])


def _fact_lines(facts: Mapping[str, Sequence[Any]]) -> list[str]:
    """Format the facts of the parts of a prior about a word."""

    def shown(item: Any) -> str:
        if isinstance(item, str):
            return printable(item)
        return f"{printable(item['word'])} {probability(item['probability'])}"

    return [labelled(heading, list(map(shown, items)) or ["none"]) for heading, items in facts.items()]


def find_word(prior: "Prior", word: str, folder: str) -> int:
    """Return the index of a word, in any case. If the dictionary holds subword pieces, the mark of a piece is optional.

    Raises OptionError, with similar words, if there is none.
    """
    convention = CONVENTIONS.get(str(prior.settings.get("pieces")))
    expected = f"{folder}: expected a {'word' if convention is None else 'piece'} of its dictionary"
    return find(word, prior.symbols, expected, str if convention is None else convention.mark)


def find(word: str, symbols: Sequence[str], expected: str, mark: Callable[[str], str] = str) -> int:
    """Return the index of a word, in any case and without its `mark`. An error begins with `expected`."""
    index = {symbol: i for i, symbol in enumerate(symbols)}
    composed = unicodedata.normalize("NFC", word)
    forms = (word, composed, word.lower(), composed.lower())
    candidates = (*forms, *map(mark, forms))
    if index.keys().isdisjoint(candidates):  # Turkish, NFD
        keys = {case_key(form) for form in (composed, mark(composed))}
        candidates = tuple(symbol for symbol in symbols if case_key(in_form(symbol, "nfc")) in keys)[:1]
    for form in candidates:
        if form in index:
            if form != word:
                note(f"{word!r} is not in the dictionary of this prior; showing {form!r}")
            return index[form]
    near = difflib.get_close_matches(composed.lower(), symbols, n=3)
    advice = f"did you mean {' or '.join(map(repr, near))}?" if near else "no entry has a similar spelling"
    raise OptionError(f"{expected}, found {word!r}; {advice}")
