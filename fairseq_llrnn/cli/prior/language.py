"""What `llrnn prior` says of packages that know a language (lexicon/languages)."""

from fairseq_llrnn.lexicon.languages import NAMES as LANGUAGES
from fairseq_llrnn.lexicon.languages import sources_of
from fairseq_llrnn.lexicon.languages.base import pip_line
from fairseq_llrnn.lexicon.languages.findings import Gathered

OTHER_WAYS = {
    "frequencies": "--background unigram counts your text",
    "lemmas": "words.morphemes and --suffixes need no lemmas",
    "analyses": "--conllu, and `llrnn lexicon` with --unimorph or --apertium, read them from elsewhere",
}


def is_list(code: str | None) -> bool:
    """Whether `--language list` is said: every language is printed, and who knows it."""
    if code != "list":
        return False
    for code, name in LANGUAGES.items():
        sources = [f"{source.name}{' (not installed)' * bool(source.missing(code))}" for source in sources_of(code)]
        print(f"{code:<4} {name:<18} {', '.join(sources)}")
    return True


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
