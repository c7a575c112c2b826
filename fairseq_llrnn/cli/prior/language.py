"""What `llrnn prior` asks and says about packages that know a language (lexicon/languages)."""

import argparse
from collections.abc import Sequence
from typing import Any

from fairseq_llrnn.cli.prior.alone import refuse_alone
from fairseq_llrnn.lexicon.languages import NAMES as LANGUAGES
from fairseq_llrnn.lexicon.languages import sources_of
from fairseq_llrnn.lexicon.languages.base import pip_line
from fairseq_llrnn.lexicon.languages.findings import LEMMA_FLOOR, Gathered

LIST = "list"
OTHER_WAYS = {
    "frequencies": "--background unigram counts your text",
    "lemmas": "--morphemes and --suffixes need no lemmas",
    "analyses": "--conllu, and `llrnn lexicon` with --unimorph or --apertium, read them from elsewhere",
}


class _Language(argparse.Action):
    """A language's code or name; `list` prints the known ones and ends."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if values == LIST:
            print("\n".join(table()))
            parser.exit()
        setattr(namespace, self.dest, values)


def add_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--language", action=_Language, metavar="CODE",
        help="what packages know of the words of this language, e.g. uk, ukr or Ukrainian: analyses and lemmas as "
        "features, and frequencies for --background language; `list` prints the languages and their packages (extra "
        "`languages`; docs/guides/languages.md)",
    )  # fmt: skip
    group.add_argument(
        "--lemma-floor", type=int, metavar="N",
        help="of --language: how many words of the dictionary must share a lemma, for it to be a feature (default: "
        f"{LEMMA_FLOOR})",
    )  # fmt: skip


def floor(args: argparse.Namespace) -> int:
    """--lemma-floor, which needs --language."""
    if args.language is None:
        refuse_alone(args, ("lemma_floor",), "--language")
    return LEMMA_FLOOR if args.lemma_floor is None else int(args.lemma_floor)


def table() -> list[str]:
    """Every language, and who knows it."""
    rows = []
    for code, name in LANGUAGES.items():
        sources = [f"{source.name}{' (not installed)' * bool(source.missing(code))}" for source in sources_of(code)]
        rows.append(f"{code:<4} {name:<18} {', '.join(sources)}")
    return rows


def lines(gathered: Gathered | None) -> list[str]:
    """What was found, and what is missing; nothing where no language was asked for."""
    if gathered is None:
        return []
    said = [f"language: {LANGUAGES[gathered.language]} ({gathered.language})"]
    for found in gathered.findings:
        share = f", {found.share:.1%} of the counted text" if found.share else ""
        said.append(
            f"  {f'{found.source} {found.version}':<18} {found.gives} of {found.known:,} of {found.words:,} words "
            f"({found.known / max(1, found.words):.1%}){share}"
        )
        if found.gives == "lemmas":
            said.append(
                f"  {'':<18} {gathered.pooled:,} words have a lemma that {gathered.floor} words or more share; "
                "other lemmas are left out"
            )
    if gathered.missing:
        said.append(f"  not installed: {', '.join(gathered.missing)}; {pip_line(gathered.missing)}")
    said += [f"  no package has {kind} of this language; {OTHER_WAYS[kind]}" for kind in gathered.lacking]
    return said
