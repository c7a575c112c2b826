"""Which words of a gold tree of the embedded corpus do not agree, by its relations."""

from __future__ import annotations

import conllu


def clash(left: conllu.Token, right: conllu.Token, names: tuple[str, ...] = ("Gender", "Number")) -> bool:
    a, b = left["feats"] or {}, right["feats"] or {}
    return any(name in a and name in b and a[name] != b[name] for name in names)


def agreement_errors(tree: conllu.TokenList) -> tuple[int, list[str]]:
    """How many agreements were looked at, and which are wrong."""
    by_id = {token["id"]: token for token in tree}
    checked, wrong = 0, []

    def check(left: conllu.Token, right: conllu.Token, *names: str) -> None:
        nonlocal checked
        checked += 1
        if clash(left, right, names or ("Gender", "Number")):
            wrong.append(f"{left['form']} / {right['form']} in: {tree.metadata['text']}")

    for token in tree:
        head = by_id.get(token["head"])
        children = [child for child in tree if child["head"] == token["id"]]
        if token["deprel"] in ("det", "amod"):
            assert head is not None
            check(token, head)
        auxiliaries = [child for child in children if child["deprel"] in ("aux:tense", "aux:pass", "cop")]
        subjects = [child for child in children if child["deprel"].startswith("nsubj")]
        if not subjects:
            continue
        (subject,) = subjects
        if subject["lemma"] == "qui":
            assert head is not None
            subject = head
        finite = auxiliaries[0] if auxiliaries else token
        assert finite["feats"]["VerbForm"] == "Fin"
        assert finite["feats"]["Person"] == (subject["feats"] or {}).get("Person", "3")
        check(finite, subject, "Number")
        if token["upos"] == "NOUN" or not auxiliaries:
            continue
        if auxiliaries[0]["lemma"] == "être":
            check(token, subject)
            if token["upos"] == "VERB":
                assert {"Gender", "Number"} <= token["feats"].keys()
        elif any(child["lemma"] == "que" and child["deprel"] == "obj" for child in children):
            assert head is not None and {"Gender", "Number"} <= head["feats"].keys()
            check(token, head)
        else:
            assert (token["feats"]["Gender"], token["feats"]["Number"]) == ("Masc", "Sing")
    return checked, wrong
