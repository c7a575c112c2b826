"""Languages of the packages: their codes (ISO 639), and their names in English."""

import difflib

from fairseq_llrnn.errors import OptionError

# the code that is used here and other codes, also of varieties; the English name and others: the native name, so that
# deutsch is no misspelt Dutch, and varieties that packages treat as one language
TABLE = """
ar/ara Arabic
ast Asturian
bg/bul Bulgarian, български
bn/ben Bengali
ca/cat Catalan, català
cs/ces/cze Czech, čeština
cy/cym/wel Welsh
da/dan Danish, dansk
de/deu/ger German, deutsch
el/ell/gre Greek, ελληνικά
en/eng English
enm Middle English
eo/epo Esperanto
es/spa Spanish, español
et/est Estonian, eesti
fa/fas/per Persian
fi/fin Finnish, suomi
fr/fra/fre French, français
ga/gle Irish
gd/gla Scottish Gaelic
gl/glg Galician, galego
grc Ancient Greek
gv/glv Manx
he/heb Hebrew
hi/hin Hindi
hu/hun Hungarian, magyar
hy/hye/arm Armenian
id/ind Indonesian
is/isl/ice Icelandic
it/ita Italian, italiano
ja/jpn Japanese
ka/kat/geo Georgian
ko/kor Korean
la/lat Latin
lb/ltz Luxembourgish
lt/lit Lithuanian, lietuvių
lv/lav Latvian, latviešu
mk/mkd/mac Macedonian
ml/mal Malayalam
ms/msa/may Malay
nb/nob/no/nor Norwegian, norsk, bokmål, norwegian bokmål
nl/nld/dut Dutch, nederlands
nn/nno Norwegian Nynorsk
pl/pol Polish, polski
pt/por Portuguese, português
ro/ron/rum Romanian, română
ru/rus Russian, русский
se/sme Northern Sami
sh/hbs/hr/hrv/sr/srp/bs/bos Serbo-Croatian, hrvatski, srpski, bosnian, croatian, serbian
sk/slk/slo Slovak, slovenčina
sl/slv Slovenian, slovenščina
sq/sqi/alb Albanian
sv/swe Swedish, svenska
sw/swa Swahili
ta/tam Tamil
tl/tgl/fil Tagalog
tr/tur Turkish, türkçe
uk/ukr Ukrainian, українська
ur/urd Urdu
vi/vie Vietnamese
zh/zho/chi Chinese
"""
NAMES: dict[str, str] = {}  # by code
CODES: dict[str, str] = {}  # by code and name
for _line in TABLE.strip().splitlines():
    _codes, _, _names = _line.partition(" ")
    _code = _codes.partition("/")[0]
    NAMES[_code] = _names.partition(",")[0]
    CODES.update(dict.fromkeys((*_codes.split("/"), *_names.lower().split(", ")), _code))
SHORTEST_MISSPELT = 4  # letters; shorter texts are codes, and similar to many others


def language_code(text: str, option: str = "") -> str:
    """Return the code of a language that is given as `hu`, `hun`, `Hungarian`, `magyar` or `hu_HU`.

    Args:
        option: option and value for the error (default: --language and the text).

    Raises:
        OptionError: the language is unknown. The message lists the known ones.
    """
    query = " ".join(text.lower().split())
    for form in (query, query.replace("-", "_").partition("_")[0]):
        if form in CODES:
            return CODES[form]
    similar = difflib.get_close_matches(query, CODES, n=1, cutoff=0.75) if len(query) >= SHORTEST_MISSPELT else []
    advice = f" (did you mean {CODES[similar[0]]}, {NAMES[CODES[similar[0]]]}?)" if similar else ""
    name, found = option or f"--language {text}", "another" if query else "none"
    raise OptionError(
        f"{name}: expected a language with a package, found {found}{advice}; for other languages give --conllu, or use "
        "`llrnn lexicon` with --unimorph or --apertium; codes and English names of those with a package: "
        + ", ".join(f"{code} {name}" for code, name in NAMES.items())
    )
