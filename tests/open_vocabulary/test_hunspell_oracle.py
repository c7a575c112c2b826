"""hunspell accepts the strings that a dictionary's distribution draws (extra `hunspell`)."""

from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.open_vocabulary.affix_grammar import read_grammar
from fairseq_llrnn.open_vocabulary.affixed_strings import AffixedStrings

DEBIAN = Path("/usr/share/hunspell")  # apt-get install hunspell-fr hunspell-de-de hunspell-id hunspell-hu …
NAMES = ["fr", "de_DE", "id_ID", "hu_HU", "el_GR", "lv_LV", "tr_TR", "uk_UA", "cs_CZ"]


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_words(name: str) -> None:
    hunspell = pytest.importorskip("hunspell")
    path = (DEBIAN / f"{name}.dic").resolve()
    if not path.exists():
        pytest.skip(f"there is no {path}")
    model = AffixedStrings.fit(read_grammar(path, Spelling(False)), {})
    drawn = model.draw(300, np.random.default_rng(0))
    assert (model.string_probs(drawn) > 0.0).all() and len({*drawn}) > 200
    accepts = hunspell.Hunspell(path.stem, hunspell_data_dir=str(path.parent)).spell
    assert [word for word in drawn if not accepts(word)] == []


@pytest.mark.parametrize(
    ("affixes", "entries"),
    [
        ("SFX S Y 40\n" + "".join(f"SFX S 0 {'x' * n}/S .\n" for n in range(1, 41)), "cat/S"),  # S after S
        ("SFX S Y 300\n" + "".join(f"SFX S {'a' * (n % 5)} 0 .\n" for n in range(300)), "aaaaaaaaaaaa/S\naaaaaaaaa/S"),
        ("SFX S N 1\nSFX S 0 0/S .\nPFX S Y 1\nPFX S 0 0/S .\n", "a/S"),  # affixes without letters
    ],
)
def test_hostile_rules_keep_within_limits(affixes: str, entries: str, tmp_path: Path) -> None:
    (tmp_path / "x.aff").write_text("SET UTF-8\nFULLSTRIP\n" + affixes, encoding="utf-8")
    (tmp_path / "x.dic").write_text(f"{entries.count('/')}\n{entries}\n", encoding="utf-8")
    model = AffixedStrings.fit(read_grammar(tmp_path / "x.dic", Spelling(False)), {"catx": 1.0, "aaaaaaaa": 1.0})
    drawn = sorted({*model.draw(200, np.random.default_rng(0))})
    assert drawn and 0.9 < model.string_probs(drawn).sum() < 1.0 + 1e-9
