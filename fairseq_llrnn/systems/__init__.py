"""Whole further systems, one folder each. Deleting a folder takes the system away and breaks nothing else.

No other package names one: what a system offers is found by the names of its files (registry.py). A system brings
README.md and options.md (scripts/list_options.py); its tests are in tests/systems/NAME.
"""
