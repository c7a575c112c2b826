"""The line that identifies a prior next to a score."""

from __future__ import annotations

import json
from pathlib import Path

from fairseq_llrnn import __version__
from fairseq_llrnn.cli.main import main
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Prior, Recipe
from fairseq_llrnn.prior.building import build_prior

SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", "le", "chat"]
WORDS = LexiconOptions(lexicon={"le": ["POS:DET", "Gender:Masc"], "chat": ["POS:NOUN"]})


def test_it_says_what_a_prior_is_made_of() -> None:
    prior = build_prior(SYMBOLS, Recipe(top_words=1, words=WORDS, background="unigram plus uniform"))
    version, features, background, lexicon, dictionary, whole = prior.signature.split("|")
    assert (version, features) == (f"llrnn:{__version__}", "features:Gender,POS")
    assert (background, lexicon) == ("background:unigram_plus_uniform", "lexicon:none")
    assert whole == f"prior:{prior.fingerprint[:8]}" and len(dictionary) == len("dict:12345678")
    assert not set(prior.signature) & set(" \n\t")


def test_it_has_at_most_120_characters() -> None:
    lexicon = LexiconOptions(lexicon={"le": [f"Group{letter}:x" for letter in "abcdefgh"]})
    background = "unigram plus uniform plus unigram"
    signature = build_prior(SYMBOLS, Recipe(top_words=1, words=lexicon, background=background)).signature
    assert len(signature) <= 120
    assert "|features:Groupa,Groupb,Gro...|background:unigram_plus_unif...|" in signature


def test_the_same_prior_has_the_same_and_another_one_another(tmp_path: Path) -> None:
    recipe = Recipe(top_words=1, words=WORDS)
    prior = build_prior(SYMBOLS, recipe)
    prior.save(tmp_path / "prior")
    assert Prior.load(tmp_path / "prior").signature == build_prior(SYMBOLS, recipe).signature == prior.signature
    uniform = Recipe(top_words=1, words=WORDS, background="uniform")
    others = [uniform, Recipe(top_words=2, words=WORDS), Recipe.softmax()]
    assert len({prior.signature, *(build_prior(SYMBOLS, other).signature for other in others)}) == 4


def test_show_has_it_with_the_recipe(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "dict.txt").write_text("le 2\nchat 1\n", encoding="utf-8")
    given = ["--dict", str(tmp_path / "dict.txt"), "--top-words", "1", "--shapes", "--out", str(tmp_path / "prior")]
    assert main(["prior", *given]) == 0
    capsys.readouterr()
    signature = Prior.load(tmp_path / "prior").signature
    assert main(["show", str(tmp_path / "prior")]) == 0
    shown = capsys.readouterr().out
    assert f"signature   {signature}\n" in shown
    assert '\nrecipe\n  dictionary = "../dict.txt"\n  shapes = true\n  top_words = 1\n\nsettings\n' in shown
    assert main(["show", str(tmp_path / "prior"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["signature"] == signature and "shapes = true" in told["recipe"]
