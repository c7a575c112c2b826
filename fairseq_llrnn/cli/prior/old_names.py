"""Options that `llrnn prior` had, and how the same is written now. `{}` stands for the value of the option."""

OLD_NAMES = {
    "--ngram-text": "in the background: --background 'ngram(3, text={})'",
    "--ngram-weight": "in the background: --background 'ngram(3, weight={})'",
    "--ngram-prune": "in the background: --background 'ngram(3, prune=[{}])'",
    "--folds": "in the background: --background 'ngram(3, folds={})'",
    "--background-temperature": "in the background: --background 'ngram(3, temperature={})'",
    "--on-zero": "in the background: --background 'automaton(FILE, on_zero={})'",
    "--unknown-symbols": "in the background: --background 'automaton(FILE, unknown_symbols={})'",
    "--cache-weight": "in the background: --background 'cache(500, weight={})', or 'cache(500, learned)'",
    "--cache-decay": "in the background: --background 'cache(500, decay={})'",
    "--background-data": "in the background: --background 'model(FILE, data={})'",
    "--background-prior": "in the background: --background 'model(FILE, prior={})'",
    "--model-weight": "in the background: --background 'model(FILE, weight={})'",
    "--smoothing": "in the background: --background 'unigram(smoothing={})'",
    "--pseudo-count": "in the background: --background 'unigram(smoothing=additive, pseudo_count={})'",
    **{
        f"--{option}": f"by a table: llrnn lexicon --{option} {{}} --out words.tsv, then --lexicon words.tsv"
        for option in ("unimorph", "hunspell", "apertium", "values")
    },
    "--lexical-source-lemmas": "by a table: llrnn lexicon --language en --out en.tsv, "
    "then --set translations.source_lexicon=en.tsv",
}

# those that a key of the recipe says now
KEYS = {
    "--workers": "workers",
    "--lemma-floor": "words.lemma_floor",
    "--morphemes": "words.morphemes",
    "--morpheme-floor": "words.morpheme_floor",
    "--guess": "words.guess",
    "--keep-case": "words.keep_case",
    "--lower": "words.lower",
    "--normalize": "words.normalize",
    "--patterns": "patterns",
    "--identity-floor": "identity_floor",
    "--input-features": "input_features",
    "--input-top-words": "input_top_words",
    "--source-dict": "source_dictionary",
    "--lexical-weight": "translations.weight",
    "--lexical-top": "translations.top",
    "--lexical-units": "translations.units",
    "--lexical-form-power": "translations.form_power",
    "--source-lexicon": "translations.source_lexicon",
    "--aligner": "translations.aligner",
    "--evidence-map": "evidence.mapping",
    "--evidence-weight": "evidence.weight",
    "--unsupported": "evidence.unsupported",
    "--open-floor": "open_vocabulary.floor",
    "--open-types": "open_vocabulary.types",
}
ODD = {
    "--keep-case": "--set words.keep_case=true",
    "--lexical-weight": "--set translations.weight={}, or translations.learned=true",
    "--unsupported": "--set evidence.unsupported.{}",
}
OLD_NAMES |= {
    option: f"in the recipe, as {key}: {ODD.get(option, f'--set {key}={{}}')}" for option, key in KEYS.items()
}
