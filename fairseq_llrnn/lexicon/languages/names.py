"""Languages that some package knows: their codes (ISO 639), and their names in English."""

import difflib

from fairseq_llrnn.errors import OptionError

# the code by which a language is called here, others for it or for a part of it; its name
TABLE = """
ar/ara Arabic
ast Asturian
bg/bul Bulgarian
bn/ben Bengali
ca/cat Catalan
cs/ces/cze Czech
cy/cym/wel Welsh
da/dan Danish
de/deu/ger German
el/ell/gre Greek
en/eng English
enm Middle English
eo/epo Esperanto
es/spa Spanish
et/est Estonian
fa/fas/per Persian
fi/fin Finnish
fr/fra/fre French
ga/gle Irish
gd/gla Scottish Gaelic
gl/glg Galician
grc Ancient Greek
gv/glv Manx
he/heb Hebrew
hi/hin Hindi
hu/hun Hungarian
hy/hye/arm Armenian
id/ind Indonesian
is/isl/ice Icelandic
it/ita Italian
ja/jpn Japanese
ka/kat/geo Georgian
ko/kor Korean
la/lat Latin
lb/ltz Luxembourgish
lt/lit Lithuanian
lv/lav Latvian
mk/mkd/mac Macedonian
ml/mal Malayalam
ms/msa/may Malay
nb/nob/no/nor Norwegian
nl/nld/dut Dutch
nn/nno Norwegian Nynorsk
pl/pol Polish
pt/por Portuguese
ro/ron/rum Romanian
ru/rus Russian
se/sme Northern Sami
sh/hbs/hr/hrv/sr/srp/bs/bos Serbo-Croatian
sk/slk/slo Slovak
sl/slv Slovenian
sq/sqi/alb Albanian
sv/swe Swedish
sw/swa Swahili
ta/tam Tamil
tl/tgl/fil Tagalog
tr/tur Turkish
uk/ukr Ukrainian
ur/urd Urdu
vi/vie Vietnamese
zh/zho/chi Chinese
"""
# what their speakers call some of them, so that deutsch is no misspelt Dutch
ENDONYMS = (
    "български bg català ca čeština cs dansk da deutsch de ελληνικά el español es eesti et suomi fi français fr galego "
    "gl hrvatski sh magyar hu italiano it lietuvių lt latviešu lv nederlands nl norsk nb polski pl português pt română "
    "ro русский ru slovenčina sk slovenščina sl srpski sh svenska sv türkçe tr українська uk"
).split()
# other English names of languages, or of what packages know as one
OTHER_NAMES = {"bosnian": "sh", "croatian": "sh", "serbian": "sh", "bokmål": "nb", "norwegian bokmål": "nb"}
NAMES: dict[str, str] = {}  # by code
CODES: dict[str, str] = {}  # by all that a language may be called
for _line in TABLE.strip().splitlines():
    _codes, _, _name = _line.partition(" ")
    _code = _codes.partition("/")[0]
    NAMES[_code] = _name
    CODES.update(dict.fromkeys((*_codes.split("/"), _name.lower()), _code))
CODES.update(zip(ENDONYMS[::2], ENDONYMS[1::2], strict=True))
CODES.update(OTHER_NAMES)
SHORTEST_MISSPELT = 4  # letters: two or three are a code, and any other code is near it


def language_code(text: str, option: str = "") -> str:
    """The code of a language that is given as `hu`, `hun`, `Hungarian`, `magyar` or `hu_HU`.

    Args:
        option: what the user wrote, for the error (default: --language and the text).

    Raises:
        OptionError: none of them; it lists the known ones.
    """
    asked = " ".join(text.lower().split())
    for form in (asked, asked.replace("-", "_").partition("_")[0]):
        if form in CODES:
            return CODES[form]
    near = difflib.get_close_matches(asked, CODES, n=1, cutoff=0.75) if len(asked) >= SHORTEST_MISSPELT else []
    advice = f" (did you mean {CODES[near[0]]}, {NAMES[CODES[near[0]]]}?)" if near else ""
    name, other = option or f"--language {text}", "another" if asked else "none"
    raise OptionError(
        f"{name}: expected a language that some package knows, found {other}{advice}; for others there are --conllu, "
        f"and `llrnn lexicon` with --unimorph or --apertium; known, by code or English name, are {all_languages()}"
    )


def all_languages() -> str:
    """`ar Arabic, ast Asturian, …`"""
    return ", ".join(f"{code} {name}" for code, name in NAMES.items())
