"""For tools that ask for this file: everything is in pyproject.toml."""

from setuptools import setup

setup()
