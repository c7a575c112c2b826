"""Registration of the speller of `--open-vocabulary neural` (open_vocabulary/speller.py)."""

KIND = "neural"  # of open vocabularies
