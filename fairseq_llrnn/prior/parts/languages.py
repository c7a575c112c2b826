"""Which packages a prior's features and weights come from, and their licences: for people, no background."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.lexicon.languages.findings import Finding
from fairseq_llrnn.prior.part import Part, SavedPart, register_part

if TYPE_CHECKING:
    from fairseq_llrnn.prior.prior import Prior

TYPES = {"known": int, "words": int, "share": float}  # of a finding's fields; all others are text


@register_part("languages")
@dataclass(frozen=True)
class LanguagesPart(Part):
    """The packages that were asked, one finding each."""

    findings: tuple[Finding, ...]

    def description(self) -> dict[str, Any]:
        return {"sources": [dict(vars(finding)) for finding in self.findings]}

    @classmethod
    def read(cls, saved: SavedPart) -> LanguagesPart:
        sources = saved.description["sources"]
        if not isinstance(sources, list) or not all(map(_is_finding, sources)):
            raise ValueError("languages: expected what was found in each package, with its licence")
        return cls(tuple(Finding(**source) for source in sources))

    @property
    def identity(self) -> str:
        return ""  # features and weights say all that a model depends on

    def lines(self, prior: Prior) -> list[str]:
        lines: list[str] = []
        for finding in self.findings:
            words = f"{finding.known:,} words ({finding.language})"
            lines.append(f"{finding.source} {finding.version}: {finding.gives} of {words}")
            first, *others = finding.licence.split("; ")
            lines += [f"licence {first}", *others]
        return lines


def _is_finding(source: object) -> bool:
    names = {field.name for field in fields(Finding)}
    return (
        isinstance(source, dict)
        and source.keys() == names
        and all(type(value) is TYPES.get(name, str) for name, value in source.items())
    )
