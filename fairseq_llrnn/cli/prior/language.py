"""Print the packages of a language (lexicon/languages) for `llrnn prior`."""

from fairseq_llrnn.lexicon.languages.language_source import Gathered, pip_line, sources_of
from fairseq_llrnn.lexicon.languages.names import NAMES as LANGUAGES

OTHER_WAYS = {
    "frequencies": "--background unigram counts your text",
    "lemmas": "words.morphemes and --suffixes need no lemmas",
    "analyses": "use --conllu, or `llrnn lexicon` with --unimorph or --apertium",
}


def is_list(code: str | None) -> bool:
    """Print every language and its packages if the code is `list`. Return whether it is."""
    if code != "list":
        return False
    for code, name in LANGUAGES.items():
        sources = [f"{source.name}{' (not installed)' * bool(source.missing(code))}" for source in sources_of(code)]
        print(f"{code:<4} {name:<18} {', '.join(sources)}")
    return True


def lines(gathered: Gathered | None) -> list[str]:
    """Return the lines on the words of each package, and on missing packages, or none without --language."""
    if gathered is None:
        return []
    result = [f"language: {LANGUAGES[gathered.language]} ({gathered.language})"]
    for finding in gathered.findings:
        share = f", {finding.share:.1%} of the counted text" if finding.share else ""
        result.append(
            f"  {f'{finding.source} {finding.version}':<18} {finding.gives} of {finding.known:,} of "
            f"{finding.words:,} words ({finding.known / max(1, finding.words):.1%}){share}"
        )
        if finding.gives == "lemmas":
            result.append(
                f"  {'':<18} {gathered.pooled:,} words have a lemma that {gathered.floor} words or more share; "
                "other lemmas are left out"
            )
    if gathered.missing:
        result.append(f"  not installed: {', '.join(gathered.missing)}; {pip_line(gathered.missing)}")
    result += [f"  no package has {kind} of this language; {OTHER_WAYS[kind]}" for kind in gathered.lacking]
    return result
