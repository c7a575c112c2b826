"""Models with experts: a user's file of them, and models over them with weights that nobody trained."""

from pathlib import Path

import pytest

FILE = '''
from fairseq_llrnn.systems.experts.expert import Expert, Firing


class Mirror(Expert):
    """Knows which words the source spells backwards."""

    def open(self, prior):
        self.known = set(prior.symbols)

    def fires(self, source, prefix):
        words = [word[::-1] for word in source]
        return Firing(-1.0, {"POS:VERB": 0.5}, {word: 1.0 + i for i, word in enumerate(words) if word in self.known})


class Said(Expert):
    """Looks at what was said: it is not said again, and the end is nearer with every word."""

    looks_at_prefix = True

    def fires(self, source, prefix):
        said = {word: -0.5 for word in prefix if word != "<unk>"}
        exceptions = {**said, "</s>": 0.1 * len(prefix)}
        return Firing(groups={"Gender:Fem": 0.3 * len(prefix), "NOTTOP": -0.2}, exceptions=exceptions)


class Broken(Expert):
    def fires(self, source, prefix):
        return {}["town"]
'''


def options(file: Path, *names: str) -> list[str]:
    return ["--expert", ",".join(f"{file}:{name}" for name in names)]


@pytest.fixture(scope="session")
def expert_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's file with experts: Mirror, Said, and Broken."""
    place = tmp_path_factory.mktemp("experts") / "mine.py"
    place.write_text(FILE, encoding="utf-8")
    return place
