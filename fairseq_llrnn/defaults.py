"""Defaults of priors and of small texts. `llrnn prior --help` shows them, so this module imports nothing.

The files in the comments explain them.
"""

FOLDS = 5  # ngrams/background.py
AUTOMATON_FLOOR = 1e-6  # prior/parts/automaton_part.py
ON_ZERO = ("error", "skip", "floor")
CACHE_WEIGHT, CACHE_DECAY, LEARNED_CACHE_DECAY = 0.9, 1.0, 0.99  # prior/parts/cache.py
OPEN_FLOOR = 5  # prior/parts/open_vocabulary.py
MORFESSOR = "morfessor"  # lexicon/options.py
MAX_SLOTS = 16  # of a sentence; evidence/evidence_table.py
LEXICAL_WEIGHT, LEXICAL_TOP, FORM_POWER = 0.5, 10, 0.5

# trainings on small texts; plugin/kinds.py, comparison/models.py, docs/results/small-texts.md
SMALL_ARCH, SMALL_MAX_TOKENS, SMALL_PATIENCE = "llrnn_lm_small", 1024, 5
FALLING_RATE, RATE_PATIENCE = "--lr-scheduler reduce_lr_on_plateau --lr-shrink 0.4 --lr-patience", 1
