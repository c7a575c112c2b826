"""Meanings of the ordinary words: one English word for each French one, and no English word for two of a kind.

The format is `french=english`, with an underscore for a space, and verbs as base/past/participle if they are irregular.
If English has one word for both genders (voisin, voisine), the feminine gets a word of its own, so that the English
text determines the gender of the French noun.
"""

from collections.abc import Mapping

from toy_french.bilingual import english
from toy_french.words import Lexeme, listed

Key = tuple[str, str]  # UPOS and French lemma

_NOUNS = """
    voisin=neighbour garçon=boy père=father frère=brother médecin=doctor paysan=peasant boulanger=baker roi=king
    marchand=merchant soldat=soldier ami=friend homme=man oncle=uncle cousin=cousin chasseur=hunter berger=shepherd
    peintre=painter
    voisine=lady_neighbour fille=girl mère=mother sœur=sister dame=lady reine=queen marchande=saleswoman amie=girlfriend
    femme=woman tante=aunt cousine=girl_cousin bergère=shepherdess danseuse=dancer paysanne=countrywoman
    princesse=princess infirmière=nurse
    livre=book jardin=garden chemin=path arbre=tree pont=bridge bateau=boat mur=wall chapeau=hat toit=roof
    village=village marché=market château=castle champ=field panier=basket vase=vase cheval=horse journal=newspaper
    tableau=painting manteau=coat verre=glass
    maison=house porte=door fenêtre=window ville=town table=table lettre=letter route=road rue=street gare=station
    montagne=mountain rivière=river chaise=chair robe=dress chanson=song histoire=story église=church pomme=apple
    fleur=flower lampe=lamp école=school boîte=box voiture=car forêt=forest
    prix=price coût=cost montant=amount tarif=tariff loyer=rent euro=euro franc=franc
    numéro=number chapitre=chapter étage=floor page=page chambre=room ligne=line an=year
    train=train vol=flight dossier=file code=code kilo=kilo habitant=inhabitant
"""
_ADJECTIVES = """
    petit=small grand=big joli=pretty
    vert=green noir=black rouge=red rond=round fragile=fragile court=short froid=cold chaud=hot calme=calm
    content=pleased lent=slow parfait=perfect triste=sad important=important vide=empty étroit=narrow tranquille=quiet
    lourd=heavy propre=clean élégant=elegant actif=active naïf=naive royal=royal normal=normal cruel=cruel
    naturel=natural ancien=ancient italien=italian parisien=parisian heureux=happy curieux=curious dangereux=dangerous
    bleu=blue poli=polite fatigué=tired carré=square doré=golden américain=american brillant=bright
"""
_VERBS = """
    regarder=watch aimer=love fermer=close chercher=seek/sought trouver=find/found montrer=show/showed/shown
    porter=carry garder=keep/kept cacher=hide/hid/hidden laver=wash donner=give/gave/given préparer=prepare
    dessiner=draw/drew/drawn visiter=visit finir=finish choisir=choose/chose/chosen écouter=hear/heard demander=request
    oublier=forget/forgot/forgotten présenter=present raconter=relate couper=slice casser=break/broke/broken
    admirer=admire réparer=repair décorer=decorate peser=weigh bâtir=build/built remplir=fill saisir=seize garnir=adorn
    démolir=demolish
    chanter=sing/sang/sung travailler=work marcher=walk danser=dance trembler=tremble bavarder=gossip
    désirer=desire détester=detest penser=think/thought jurer=swear/swore/sworn
    arriver=get/got rentrer=come_home/came/come retourner=return aller=go/went/gone
    habiter=inhabit occuper=occupy louer=hire coûter=cost/cost payer=pay/paid
"""
NUMBER_WORDS = dict(
    pair.split("=")
    for pair in listed(
        "deux=two trois=three quatre=four cinq=five six=six sept=seven dix=ten douze=twelve quinze=fifteen "
        "vingt=twenty trente=thirty cent=hundred"
    )
)
MONTHS = dict(  # lower-case in French only
    pair.split("=")
    for pair in listed(
        "janvier=January février=February mars=March avril=April mai=May juin=June juillet=July août=August "
        "septembre=September octobre=October novembre=November décembre=December"
    )
)
# Names with a French form of their own. Every other one is kept from training, like every other name.
EXONYMS = dict(
    pair.split("=")
    for pair in listed(
        "Londres=London Lisbonne=Lisbon Genève=Geneva Varsovie=Warsaw Bruxelles=Brussels Vienne=Vienna Venise=Venice "
        "Anvers=Antwerp Athènes=Athens Séville=Seville Gênes=Genoa Dresde=Dresden Moscou=Moscow Cordoue=Cordoba "
        "Naples=Naples Turin=Turin Tolède=Toledo Gand=Ghent"
    )
)
# Determiners by lemma, singular and plural; all other closed words by lemma or, for pronouns, by form.
DETERMINERS = {
    "le": ("the", "the"),
    "un": ("a", "some"),
    "ce": ("this", "these"),
    "notre": ("our", "our"),
    "leur": ("their", "their"),
}
CLOSED = dict(
    pair.split("=")
    for pair in listed(
        "je=i tu=you nous=we vous=you il=he elle=she ils=they elles=they qui=that que=that "
        "de=of à=to en=in pour=for dans=in devant=in_front_of derrière=behind sous=under sur=on avec=with "
        "sans=without vers=towards et=and mais=but très=very assez=quite plutôt=rather trop=too souvent=often "
        "rarement=rarely toujours=always parfois=sometimes encore=still déjà=already ici=here alors=then enfin=finally "
        "ensuite=afterwards pourtant=however aujourd'hui=today ,=, .=."
    )
)


def _entries(text: str) -> dict[str, list[str]]:
    """Parse French lemma -> English forms."""
    pairs = (entry.split("=") for entry in listed(text))
    return {french: meaning.replace("_", " ").split("/") for french, meaning in pairs}


def ordinary_glosses() -> Mapping[Key, Lexeme]:
    glosses = {("NOUN", french): english.noun(*forms) for french, forms in _entries(_NOUNS).items()}
    glosses |= {("ADJ", french): english.adjective(*forms) for french, forms in _entries(_ADJECTIVES).items()}
    glosses |= {("VERB", french): english.verb(*forms) for french, forms in _entries(_VERBS).items()}
    return glosses
