"""Every reader of untrusted files, with small sound files of its format, to be fed with damaged ones (mutations.py).

A reader is called with the path of one file. It may accept the file, or refuse it with an LLRNNError; all else (another
exception, a process that dies, takes too long or fills the memory) is a fault.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lexicons import read_conllu, read_tsv_lexicon, read_unimorph, read_values

from fairseq_llrnn.alignment.bitext import ParallelText, read_text_bitext
from fairseq_llrnn.automata.automaton_files import read_automaton
from fairseq_llrnn.cli.main import dispatch
from fairseq_llrnn.evaluation.training_words import words_of_text
from fairseq_llrnn.evidence.rules import read_evidence_map
from fairseq_llrnn.features.dictionary import WordList, load_dictionary
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.features.subwords import CONVENTIONS, PieceText
from fairseq_llrnn.lexicon.languages.english import _lemmas as english_lemmas
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.merge_sources import read_word_forms
from fairseq_llrnn.lexicon.readers.conllu import iter_conllu_words
from fairseq_llrnn.lexicon.readers.hunspell import iter_hunspell
from fairseq_llrnn.lexicon.readers.values import read_weights
from fairseq_llrnn.lexicon.readers.word_counts import read_word_counts
from fairseq_llrnn.lexicon.segments import read_segmentations
from fairseq_llrnn.ngrams.arpa import read_arpa, write_arpa
from fairseq_llrnn.ngrams.kneser_ney import estimate
from fairseq_llrnn.ngrams.ngrams import read_sentences
from fairseq_llrnn.prior.building import build
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.prior.recipe_file import read_recipe

WORDS = "le la les un une chat chats mer verte vert voit 12 1998 Paris , .".split()
SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", *WORDS)
TEXT = "le chat voit la mer verte .\nun chat vert , une mer\n\nles chats 12 Paris\nle chat voit 1998 inconnu\n"


@dataclass(frozen=True)
class Reader:
    """One reader: files that it accepts, what such a file is called, and how it is read."""

    name: str
    file: str
    samples: tuple[bytes, ...]
    read: Callable[[Path], Any]
    names_file: bool = True  # whether each of its messages does
    counts: bool = True  # whether it says what it has read: not of files of our own, which are checked as a whole
    # sound files with entries that are left out, and what is said behind the file's name
    counted: tuple[tuple[str, str], ...] = ()


def words() -> WordList:
    return WordList(SYMBOLS, np.array([0, 0, 4, 1, *range(len(WORDS), 0, -1)]))


HUNSPELL_RULES = """SET UTF-8
AF 5
AF S # 1
AF SN # 2
AF F # 3
AF N # 4
AF C # 5
FORBIDDENWORD F
ONLYINCOMPOUND C
SFX S Y 2
SFX S 0 s [^sx]
SFX S al aux/4 al
PFX N Y 1
PFX N 0 non- .
SFX N Y 1
SFX N 0 ! .
"""
HUNSPELL_WORDS = "4\nchat/1\nmer/2\tpo:noun\ncheval/1 st:cheval\nfaux/3\n"
CONLLU = """# sent_id = 1
1-2\tau\t_\t_\t_\t_\t_\t_\t_\t_
1\tle\tle\tDET\t_\tDefinite=Def|Gender=Masc|Number=Sing\t2\tdet\t_\t_
2\tchat\tchat\tNOUN\t_\tGender=Masc|Number=Sing\t0\troot\t_\t_
2.1\tvoit\tvoir\tVERB\t_\tMood=Ind\t_\t_\t_\t_

1\tla\tle\tDET\t_\tGender=Fem\t2\tdet\t_\t_
2\tmer\tmer\tNOUN\t_\tGender=Fem\t0\troot\t_\tSpaceAfter=No

"""
LEXICON = "le\tle\tDET\tGender=Masc|Number=Sing\t12\nchat\tchat\tNOUN\tGender=Masc\t3\nmer\tmer\tNOUN\t_\t1\n"
UNIMORPH = "chat\tchats\tN;PL\n\nvoir\tvoit\tV;IND;PRS;{3/LGSPEC1};SG;NOM(1;SG)\tvoi|t\nvoir\tvu\tV;V.PTCP;PST;IN+ABL\n"
SPELLED = "le\t3\nchat\t2\nmer\t0.5\n"
SEGMENTS = "# Output from Morfessor\nchats\tchat s\nver te\n12 vert + e\nles\n"
TABLE_ROW = "chats\tchat\tNOUN\tGender=Masc|Number=Plur\t2\tconllu\tno\t_\n"
TABLE = "form\tlemma\tUPOS\tFEATS\tcount\tsource\tguessed\tvalues\n" + TABLE_ROW + (
    "mer\t_\t_\tPOS=NOUN,VERB@0.25|Case=a\\,b\t0\tguess\tyes\tSize=Log@-3e2\n"
    "la mer\tla mer\tX\t_\t0\tlexicon\tno\t_\nvu\tvoir\t_\t_\t0\tsimplemma:fr\tyes\tLemma=voir\n"
)
VALUES = "chat\tValence:Pleasant\t0.75\nmer\tValence:Pleasant\t0.5\nmer\tSize:Log\t-3e2\n"
LABELLED = "__label__a __label__b le chat\nvoit __label__c\n__label__a\n"
COLUMNS = "le chat\ta\tb\nvoit\tc\n\ta\n"
WEIGHTS = "le\t3\nchat\t1.5\nmer\t0\n"
RECIPE = 'text = "text"\nbackground = "ngram(2, folds=3)"\n\n[words]\nconllu = ["a.conllu"]\n'
PATTERNS = "[patterns]\nnumber = '\\d+([.,]\\d+)*'\nplural = '\\w+s'\n"
TERMS = "cat\tchat\tNOUN\tchat|chats\nthe sea\tmer\n"
TBX = """<?xml version="1.0"?><!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX"><text><body><termEntry id="1">
<langSet xml:lang="en-GB"><tig><term>cat</term></tig><tig><term>tom</term></tig></langSet>
<langSet xml:lang="fr"><tig><term>chat</term><termNote type="partOfSpeech">noun</termNote></tig></langSet>
</termEntry></body></text></martif>
"""
EVIDENCE_MAP = "1,000\t1 000\nkph\tkilomètres heure\n"
GRAMMAR = (
    "%depth 4\n%length 9\nS -> N V [0.5] | N V S [0.5]\n# a comment\n"
    "N -> 'le' \"chat\" [2] | 'la mer' [1]\n  | 'un' [1e-3]\nV -> 'voit' [1]\n"
)
REGULAR = '( le | la )? (chat | mer){1,3} voit* [^le la] . ","? # comment\n'
FST = "0 1 le 0.5\n1 2 chat\n1 2 mer 1e-2\n2 1 <eps> 3\n2 0.25\n"
FAILING = "0 1 le 0.5\n1 2 chat\n1 2 mer 1e-2\n2 0.25\nfail 1 root 2\n"
PROBABILITIES = "weights probabilities\n0 1 le 0.5\n0 1 la 0.25\n1 2 chat 1\n2 1\n"
SPELLED = "%separator , .\nle\nla\n"
MOSES = (
    "0 ||| le chat ||| lm= -3.5 tm= -1 -2 ||| -6.5\n0 ||| la mer ||| lm= -4 tm= -1 -3 ||| -8\n"
    "1 ||| un chat ||| lm= -1 tm= 0 0 ||| -1\n"
)
JSON_LINES = (
    '{"id": 0, "source": "the cat", "hypotheses": [{"text": "le chat", "score": -1.5, "features": {"lm": -3}}]}\n'
    '{"id": 1, "source": "", "hypotheses": [{"text": "la mer", "score": -2, "features": {"lm": -1}}]}\n'
)
FAIRSEQ = (
    "S-0\tthe cat\nT-0\tle chat\nH-0\t-0.5\tle chat\nD-0\t-0.5\tle chat\nP-0\t-0.1 -0.2 -0.3\n"
    "S-1\tthe sea\nT-1\tla mer\nH-1\t-1\tla mer\nD-1\t-1\tla mer\nP-1\t-1 -1 -1\n"
)
PHRASES = (
    "la mer ||| the sea ||| 0.5 0.25 1 1e-09 ||| 0-0 1-1 ||| 2 1 1\nla mer ||| sea ||| 1 1 0.5 0.5 ||| 1-0\n"
    "le ||| the ||| 1 1 0.5 0.5 ||| ||| 3 2 1 ||| kept ||| too\n"
)
FACTS = (
    '{"copies": [{"kind": "number", "french": "12", "seen": false}], "agreements": [{"form": "verte", "seen": true}]}\n'
    '{"copies": []}\n'
)
SCORES = (
    '{"llrnn rescore": 1, "inputs": {"list": "ab"}}\n'
    '{"scores": {"lm": [[-1.5, null], [-2.0]]}, "notes": {"lm": {"unknown": 2}}}\n'
)


SURFACE = "1-2\tau\t_\t_\t_\t_\t_\t_\t_\t_\n" + CONLLU.replace("1-2\tau\t_\t_\t_\t_\t_\t_\t_\t_\n", "")
PIECES = "▁le ▁ch at\n▁mer\n"
PARAGRAPHS = "le chat\nla mer\n\nun chat\nvert\n"
ENGLISH = "cats,noun,cat\nwalked,verb,walk\n"
TREEBANK_ROWS = "1-2\tau\t_\t_\t_\t_\t_\t_\t_\t_\n1\tle\t_\tDET\t_\t_\t_\t_\t_\t_\n2\ta b\tx\tX\t_\t_\t_\t_\t_\t_\n"
TREEBANK_ROWS += "2.1\ty\ty\t_\t_\t_\t_\t_\t_\t_\n3\tmer\tmer\tNOUN\t_\t_\t_\t_\t_\t_\n"
OF_TREEBANK = "1 for empty nodes, 1 for words written together"
LEXICON_ROWS = "form\tlemma\tUPOS\tFEATS\tcount\nau\t_\t_\t_\t1\n" + "".join(
    f"{row}\n" for row in ("le\tle\tDET\t_\t99", "le\tle\tDET\t_\t99", "le\tle\tNOUN\t_\t1", "a b\t_\tX\t_\t1")
)
SLIPS = "le\tle\tDET\t_\t9\nos\tos\tNOUN\tNumber=Sing\t99\nos\tos\tNOUN\tNumber=Plur\t1\na\ta\tX\t_\t1\n"
UNIMORPH_ROWS = "aller\t-\tV;PRS\n_\tva\tV;PRS\naller\ts'en va\tV;PRS\naller\tva\tV;PRS\n"
TBX_TERMS = TBX.replace(
    "</body>",
    '<termEntry><langSet xml:lang="en"><tig><term>cat</term></tig><tig><term>tom</term></tig></langSet>'
    '<langSet xml:lang="fr"><tig><term>matou</term></tig></langSet></termEntry>'
    '<termEntry><langSet xml:lang="en"><tig><term>cat</term></tig><tig><term>old</term>'
    '<termNote type="administrativeStatus">superseded</termNote></tig></langSet>'
    '<langSet xml:lang="fr"><tig><term>chat</term></tig></langSet></termEntry>'
    '<termEntry><langSet xml:lang="en"><tig><term>sea</term></tig></langSet></termEntry></body>',
)
LOGS = f"2026-01-01 | INFO | loading\n{FAIRSEQ}Generate valid: BLEU4 = 3\n"
# of readers, by name: files with entries of every reason to be left out, and what is said
COUNTED: dict[str, tuple[tuple[str, str], ...]] = {
    "treebank": ((TREEBANK_ROWS, f"3 of 5 rows read; left out: {OF_TREEBANK}"),),
    "words of a treebank": ((TREEBANK_ROWS, f"3 of 5 rows read; left out: {OF_TREEBANK}"),),
    "text of a treebank": ((TREEBANK_ROWS, f"3 of 5 rows read; left out: {OF_TREEBANK}"),),
    "surface of a treebank": (
        (TREEBANK_ROWS, "2 of 5 rows read; left out: 1 for empty nodes, 2 written together with others"),
    ),
    "tagged treebank": ((TREEBANK_ROWS, f"3 of 5 rows read; left out: {OF_TREEBANK}"),),
    "lexicon": (
        (LEXICON_ROWS, "3 of 6 rows read; left out: 1 as header, 1 for words written together, 1 repeated (same form, "
         "lemma, UPOS and FEATS)"),
    ),
    "roles": ((SLIPS, "3 of 4 analyses read; left out: 1 of less than 2 % of a form's occurrences"),),
    "UniMorph": ((UNIMORPH_ROWS, "3 of 4 rows read; left out: 1 without a form"),),
    "table": ((TABLE + TABLE_ROW, "4 of 6 rows read; left out: 1 as header, 1 repeated"),),
    "dictionary of hunspell": (
        ("3\n# comment\n \tpo:noun\nchat/1\nfaux/3\nmer/2\nroi\n", "3 of 5 words read; left out: 1 forbidden, 1 "
         "without a word"),
        ("2\nchat/1\nterre/5\n", "1 of 2 words read; left out: 1 in compounds only"),
        ("3\nchat/1\nfaux/3\nmer/2\nroi\nchaton\n", "2 of 5 words read; left out: 1 forbidden, 2 without a form in the "
         "text"),
    ),
    "words of a spelling lexicon": (
        ("le\nau chat\nmer\n", "2 of 3 words read; left out: 1 of several words"),
    ),
    "segmentations": (
        ("# comment\n# two\n2 un + e\n1 un + e\n3 le\n", "2 of 5 rows read; left out: 2 as comment, 1 repeated"),
    ),
    "terms": (("cat\tchat\ncat\tchat\tNOUN\nsea\tmer\n", "2 of 3 rows read; left out: 1 repeated"),),
    "terms of TBX": (
        (TBX_TERMS, "2 of 7 source terms read; left out: 1 empty, or not to be used by their status, 1 of entries "
         "without a target term to use, 1 repeated, 2 with another translation in an earlier entry"),
    ),
    "evidence map": (("a\tb\na\tb\n\nc\td\n", "2 of 3 rows read; left out: 1 repeated"),),
    "grammar with unknown symbols": (
        ("%length 9\nS -> 'le' | 'roi'\n", "1 of 2 alternatives read; left out: 1 with symbols that the dictionary "
         "lacks"),
    ),
    "regular expression with unknown symbols": (
        ("le (chat | roi | [la reine])", "3 of 5 words read; left out: 2 with symbols that the dictionary lacks"),
    ),
    "automaton with unknown symbols": (
        ("# comment\n0 1 le\n0 1 roi\n1\n", "2 of 3 lines read; left out: 1 with symbols that the dictionary lacks"),
    ),
    "words with unknown characters": (
        ("%separator , .\n# comment\nle\nle\nété\n", "2 of 4 lines read; left out: 1 repeated, 1 with symbols that the "
         "dictionary lacks"),
    ),
    "phrases of a source": (
        (PHRASES + "roi ||| king ||| 1 1 1 1\n", "3 of 4 phrase pairs read; left out: 1 of phrases that no source has"),
    ),
    "n-best list": ((LOGS, "10 of 12 lines read; left out: 2 that are not part of the list (logs)"),),
}  # fmt: skip


def _arpa() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        text, path = Path(folder, "text"), Path(folder, "arpa")
        text.write_text(TEXT, encoding="utf-8")
        write_arpa(path, estimate(read_sentences([text], words()), words(), 3))
        return path.read_bytes()


def _tree(module: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.tree")
        module.save_tree(path, module.Tree.from_parents(np.array([-1, 0, 0, 1, 2, 1, 0]), 4), "ab" * 32)
        return path.read_bytes()


def _all_of_a_tree(module: Any, path: Path) -> object:
    tree = module.load_tree(path, None)
    return tree.path, tree.chosen, tree.span, tree.order, tree.place


def _automaton(path: Path, unknown: str = "error") -> object:
    return read_automaton(path, words(), unknown, log_weights=np.log(np.full(len(SYMBOLS), 0.05)))


def _dropping_words(path: Path) -> object:
    return read_automaton(path, spelling(), "drop")


def _text_of_treebank(path: Path, kind: str) -> object:
    return dispatch(["text", "--conllu", str(path), "--words", kind, "--out", str(path.with_name("out"))])


def _arpa_prior(path: Path) -> object:
    return build(words(), Recipe(top_words=3, background=f"ngram:{path}"))


def _patterns(path: Path) -> object:
    return [UserPatterns.load(path).features(word) for word in WORDS]


def _parallel(path: Path) -> object:
    other = path.with_name("other")
    other.write_text(TEXT, encoding="utf-8")
    return ParallelText.read(path, other, SYMBOLS, SYMBOLS)


def _counted(path: Path) -> object:
    return build(words(), Recipe(text=path, top_words=3, suffixes=2, shapes=True, background="ngram:2"))


# name, module of a system that may be deleted, how it reads a file, the file, and samples of it
OF_SYSTEMS: tuple[tuple[str, str, Callable[[Any, Path], Any], str, tuple[str, ...]], ...] = (
    ("terms", "fairseq_llrnn.systems.terms.tsv_file", lambda m, path: m.read_terms(path), "terms.tsv", (TERMS,)),
    ("terms of TBX", "fairseq_llrnn.systems.terms.tbx_file", lambda m, path: m.read_tbx(path, ("en", "fr")),
     "terms.tbx", (TBX,)),
    ("text with rare words", "llrnn_research.rare_words.commands.rare_words.annotate",
     lambda m, path: m._read(str(path)), "text", (TEXT,)),
    ("phrase table", "llrnn_research.phrase_tables.phrase_table", lambda m, path: list(m.read_phrase_table(path)),
     "table", (PHRASES,)),
    ("phrases of a source", "llrnn_research.phrase_tables.phrase_table",
     lambda m, path: m.PhraseTable.read(path, ["la mer", "le chat"]), "table", (PHRASES,)),
    ("paragraphs", "llrnn_research.discourse.preparing", lambda m, path: list(m.iter_paragraphs([path], True)),
     "text", (PARAGRAPHS,)),
    ("tagged treebank", "llrnn_research.markov_field.tagger_training", lambda m, path: m.read_tagged([str(path)]),
     "a.conllu", (CONLLU,)),
    ("texts with labels", "fairseq_llrnn.systems.classification.commands.classify",
     lambda m, path: list(m.read_labelled(path)), "train.tsv", (LABELLED, COLUMNS)),
)  # fmt: skip


def readers() -> list[Reader]:
    """All of them."""
    dictionary = "".join(f"{word} {len(WORDS) - i}\n" for i, word in enumerate(WORDS)) + "madeupword0000 0\n"
    index = {word: i for i, word in enumerate(SYMBOLS)}

    def text(name: str, file: str, read: Callable[[Path], Any], *samples: str, counts: bool = True) -> Reader:
        encoded = tuple(sample.encode() for sample in samples)
        return Reader(name, file, encoded, read, counts=counts, counted=COUNTED.get(name, ()))

    found = [
        text("dictionary", "dict.txt", load_dictionary, dictionary),
        text("text", "text", lambda path: read_sentences([path], words()), TEXT),
        # what a text lacks for n-grams is said of the option
        Reader("counted text", "text", (TEXT.encode(),), _counted, names_file=False),
        text("text in pieces", "text", lambda path: PieceText.read([path], CONVENTIONS["sentencepiece"]), PIECES),
        text("text of a training", "text", lambda path: words_of_text(path, None), TEXT),
        text("forms of English", "lemma_lu.csv", lambda path: list(english_lemmas(path)), ENGLISH),
        text("parallel text", "text", _parallel, TEXT),
        Reader(
            "treebank", "a.conllu", (CONLLU.encode(), gzip.compress(CONLLU.encode(), mtime=0)), _conllu,
            counted=COUNTED["treebank"],
        ),  # fmt: skip
        text("words of a treebank", "a.conllu", lambda path: list(iter_conllu_words(path, True)), CONLLU),
        text("text of a treebank", "a.conllu", lambda path: _text_of_treebank(path, "syntactic"), CONLLU),
        text("surface of a treebank", "a.conllu", lambda path: _text_of_treebank(path, "surface"), SURFACE),
        text("lexicon", "lexicon.tsv", lambda path: read_tsv_lexicon(path, lowercase=True), LEXICON),
        text("table", "words.tsv", lambda path: read_tsv_lexicon(path, lowercase=True), TABLE),
        text("forms of a table", "words.tsv", lambda path: read_word_forms([str(path)], WORDS), TABLE, LEXICON),
        text("UniMorph", "unimorph", lambda path: read_unimorph(path, lowercase=True), UNIMORPH),
        text("dictionary of hunspell", "a.dic", _hunspell, HUNSPELL_WORDS),
        # damaged rules may be noticed in the words
        Reader("rules of hunspell", "a.aff", (HUNSPELL_RULES.encode(),), _hunspell, names_file=False),
        text("values", "values.tsv", lambda path: read_values(path, lowercase=True), VALUES),
        text(
            "words of a spelling lexicon", "words",
            lambda path: read_word_counts(str(path), Spelling(True), "--spelling-lexicon"), SPELLED, UNIMORPH, TABLE,
        ),
        text("segmentations", "segments", lambda path: read_segmentations(path, lowercase=True), SEGMENTS),
        text("weights of words", "weights.tsv", lambda path: read_weights(path, index, len(index)), WEIGHTS),
        text("patterns", "patterns.toml", _patterns, PATTERNS),
        text("recipe", "prior.toml", read_recipe, RECIPE, counts=False),
        text("evidence map", "map.tsv", read_evidence_map, EVIDENCE_MAP),
        text("grammar", "a.grammar", _automaton, GRAMMAR),
        text("regular expression", "a.regex", _automaton, REGULAR),
        text("automaton", "a.txt", _automaton, FST, FAILING, PROBABILITIES),
        text("words in characters", "a.words", lambda path: read_automaton(path, spelling()), SPELLED),
        text("grammar with unknown symbols", "a.grammar", lambda path: _automaton(path, "drop"), GRAMMAR),
        text("regular expression with unknown symbols", "a.regex", lambda path: _automaton(path, "drop"), REGULAR),
        text("automaton with unknown symbols", "a.txt", lambda path: _automaton(path, "drop"), FST, FAILING),
        text("words with unknown characters", "a.words", _dropping_words, SPELLED),
        Reader("n-grams", "a.arpa", (_arpa(),), read_arpa),
        Reader("prior of n-grams", "a.arpa", (_arpa(),), _arpa_prior),
        text("bitext", "bitext", lambda path: read_text_bitext(path, path), TEXT),
    ]
    if importlib.util.find_spec("fairseq_llrnn.systems.reranking") is not None:
        from reranking_readers import of_reranking

        found += of_reranking(text)
    for name, place, read, file, samples in OF_SYSTEMS:
        with contextlib.suppress(ModuleNotFoundError):  # a system that is absent
            module = importlib.import_module(place)
            found.append(text(name, file, functools.partial(read, module), *samples))
    if importlib.util.find_spec("llrnn_research") is not None:
        module = importlib.import_module("llrnn_research.output_trees.tree")
        read_all = functools.partial(_all_of_a_tree, module)
        found.append(Reader("tree", "a.tree", (_tree(module),), read_all, counts=False))
    return found


def spelling() -> WordList:
    """A dictionary of characters."""
    symbols = ("<s>", "<pad>", "</s>", "<unk>", *"abcdehlmnostuv,.")
    return WordList(symbols, np.ones(len(symbols), dtype=np.int64))


def _beside(path: Path) -> Path:
    """FILE.dic of the file, which stands beside a sound one of the other kind."""
    for name, sound in ((".dic", HUNSPELL_WORDS), (".aff", HUNSPELL_RULES)):
        if path.suffix != name:
            path.with_suffix(name).write_text(sound, encoding="utf-8")
    return path.with_suffix(".dic")


def _hunspell(path: Path) -> object:
    found = list(iter_hunspell(_beside(path)))
    return found, list(iter_hunspell(path.with_suffix(".dic"), {"chats", "mers"}, str.lower))


def _conllu(path: Path) -> object:
    return read_conllu(path, lowercase=True)
