"""The ordinary words of the language, most of its running text. The rare ones are made by `formation`."""

from toy_french.words import listed

PERSONS_MASC = listed(
    """
    voisin garçon père frère médecin paysan boulanger roi marchand soldat ami homme oncle cousin
    chasseur berger peintre
    """
)
PERSONS_FEM = listed(
    """
    voisine fille mère sœur dame reine marchande amie femme tante cousine bergère danseuse paysanne
    princesse infirmière
    """
)
THINGS_MASC = listed(
    """
    livre jardin chemin arbre pont bateau mur chapeau toit village marché château champ panier vase
    cheval journal tableau manteau verre
    """
)
THINGS_FEM = listed(
    """
    maison porte fenêtre ville table lettre route rue gare montagne rivière chaise robe chanson
    histoire église pomme fleur lampe école boîte voiture forêt
    """
)

EARLY_ADJECTIVES = listed("petit grand joli")  # these stand before their noun
ADJECTIVES = listed(
    """
    vert noir rouge rond fragile court froid chaud calme content lent parfait triste important vide
    étroit tranquille lourd propre élégant actif naïf royal normal cruel naturel ancien italien
    parisien heureux curieux dangereux bleu poli fatigué carré doré américain brillant
    """
)

TRANSITIVE = listed(
    """
    regarder aimer fermer chercher trouver montrer porter garder cacher laver donner préparer
    dessiner visiter finir choisir écouter demander oublier présenter raconter couper casser admirer
    réparer décorer peser bâtir remplir saisir garnir démolir
    """
)
INTRANSITIVE = listed("chanter travailler marcher danser trembler bavarder")
LIKING = listed("aimer désirer détester")  # with an infinitive
SAYING = listed("penser raconter jurer montrer")  # with a clause
TRAVELLING = listed("arriver rentrer retourner aller")  # with être, and a place after à
LIVING = listed("habiter occuper louer")  # with a numbered room or house

PRICES_MASC = listed("prix coût montant tarif loyer")
CURRENCIES = listed("euro franc")
NUMBERED_MASC = listed("numéro chapitre étage")
NUMBERED_FEM = listed("page chambre ligne")
TOWN = "ville"
YEARS_OF_AGE = "an"
ROADS_FEM = listed("gare route rue église")  # "la gare de Grenoble"

NAMES_FEM = listed("marie julie claire sophie lucie jeanne hélène camille")
NAMES_MASC = listed("paul pierre jean luc marc jacques louis henri")
PLACES = listed(
    """
    grenoble paris lyon nice marseille lille nantes rennes dijon tours metz nancy reims brest pau
    arles annecy colmar valence bordeaux toulouse limoges poitiers amiens
    """
)
NUMBER_WORDS = listed("deux trois quatre cinq six sept dix douze quinze vingt trente cent")
