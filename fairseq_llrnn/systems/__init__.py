"""Whole further systems, one folder each. Deleting a folder removes the system and breaks nothing else.

No other package imports a system: `registry.py` finds its parts by their file names. Each system has a README.md and an
options.md (written by scripts/list_options.py). Its tests are in tests/systems/NAME.
"""
