"""A tiny French treebank for the tests of examples/french_morphology."""

from pathlib import Path

from example_modules import EXAMPLES

FOLDER = EXAMPLES / "french_morphology"

SING, PLUR = "Number=Sing", "Number=Plur"
PRESENT = "Mood=Ind|{}|Person=3|Tense=Pres|VerbForm=Fin"
PARTICIPLE = "{}|Tense=Past|VerbForm=Part"
# form -> lemma, UPOS, FEATS
LEXICON = {
    "la": ("le", "DET", "Gender=Fem|Number=Sing"),
    "le": ("le", "DET", "Gender=Masc|Number=Sing"),
    "les": ("le", "DET", PLUR),
    "de": ("de", "ADP", "_"),
    "et": ("et", "CCONJ", "_"),
    "qui": ("qui", "PRON", "PronType=Rel"),
    ".": (".", "PUNCT", "_"),
    "lettres": ("lettre", "NOUN", "Gender=Fem|Number=Plur"),
    "roi": ("roi", "NOUN", "Gender=Masc|Number=Sing"),
    "maison": ("maison", "NOUN", "Gender=Fem|Number=Sing"),
    "femme": ("femme", "NOUN", "Gender=Fem|Number=Sing"),
    "est": ("être", "AUX", PRESENT.format(SING)),
    "sont": ("être", "AUX", PRESENT.format(PLUR)),
    "a": ("avoir", "AUX", PRESENT.format(SING)),
    "dort": ("dormir", "VERB", PRESENT.format(SING)),
    "dorment": ("dormir", "VERB", PRESENT.format(PLUR)),
    "perdu": ("perdre", "VERB", PARTICIPLE.format("Gender=Masc|Number=Sing")),
    "perdue": ("perdre", "VERB", PARTICIPLE.format("Gender=Fem|Number=Sing")),
    "perdus": ("perdre", "VERB", PARTICIPLE.format("Gender=Masc|Number=Plur")),
    "perdues": ("perdre", "VERB", PARTICIPLE.format("Gender=Fem|Number=Plur")),
    "blanc": ("blanc", "ADJ", "Gender=Masc|Number=Sing"),
    "blanche": ("blanc", "ADJ", "Gender=Fem|Number=Sing"),
    "blanches": ("blanc", "ADJ", "Gender=Fem|Number=Plur"),
    "grand": ("grand", "ADJ", "Gender=Masc|Number=Sing"),
    "grande": ("grand", "ADJ", "Gender=Fem|Number=Sing"),
    "grands": ("grand", "ADJ", "Gender=Masc|Number=Plur"),
    "rouge": ("rouge", "ADJ", SING),
    "rouges": ("rouge", "ADJ", PLUR),
}
# Gold trees: form:head:relation, or form=FEATS:head:relation where the features are not the lexicon's.
DEV = [
    "Les:2:det lettres:7:nsubjpass de:5:case le:5:det roi:2:nmod sont:7:auxpass perdues:0:root .:7:punct",
    "la:2:det femme:4:nsubj a:4:aux perdu:0:root .:4:punct",
    "la:2:det maison:0:root rouge=Gender=Fem|Number=Sing:2:amod .:2:punct",
]
TEST = [
    "les:2:det lettres:0:root qui:4:nsubj dorment:2:acl:relcl .:2:punct",
    "la:2:det maison:4:nsubj est:4:cop grande:0:root et:6:cc blanche:4:conj .:4:punct",
    "le:2:det roi:7:nsubj et:2:cc la:5:det femme:2:conj sont:7:cop grands:0:root .:7:punct",
]
# Every form of the lexicon, so that all are in the dictionary; no trees, as in the real training text.
TRAIN = [f"{form} ." for form in LEXICON for _ in range(2)]


def rows(sentence: str) -> str:
    """A sentence in the notation above as CoNLL-U."""
    lines = []
    for number, token in enumerate(sentence.split(), 1):
        word, _, tree = token.partition(":") if not token.startswith(".:") else (".", "", token[2:])
        form, _, given = word.partition("=")
        head, _, relation = tree.partition(":")
        lemma, upos, feats = LEXICON[form.lower()]
        cells = [str(number), form, lemma, upos, "_", given or feats, head or "_", relation or "_", "_", "_"]
        lines.append("\t".join(cells))
    return "# text\n" + "\n".join(lines) + "\n\n"


def write_treebank(folder: Path, with_lexicon: bool = True) -> Path:
    folder.mkdir()
    for name, sentences in (("train", TRAIN), ("dev", DEV), ("test", TEST)):
        (folder / f"{name}.conllu").write_text("".join(map(rows, sentences)), encoding="utf-8")
    if with_lexicon:
        lexicon = "".join(f"{form}\t{lemma}\t{upos}\t{feats}\t3\n" for form, (lemma, upos, feats) in LEXICON.items())
        (folder / "lexicon.tsv").write_text(lexicon, encoding="utf-8")
    return folder
