"""What is installed, and with what. The versions are exact: they were run together, and fairseq is choosy.

`constraints.txt` pins what these packages need in turn; `make setup` installs all in an order that works.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
README = HERE / "README.md"


def version() -> str:
    """The version constant of the package, read without importing it (torch may not be there yet)."""
    text = (HERE / "fairseq_llrnn" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    if found is None:
        raise SystemExit("setup.py: fairseq_llrnn/__init__.py has no line __version__ = \"…\"")
    return found.group(1)


setup(
    name="fairseq-llrnn",
    version=version(),
    description="Log-linear RNNs for fairseq: features and backgrounds as prior knowledge",
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    license="MIT",
    license_files=["LICENSE"],
    python_requires=">=3.11,<3.12",
    packages=find_packages(include=["fairseq_llrnn", "fairseq_llrnn.*"]),
    package_data={"": ["py.typed", "README.md"]},
    install_requires=[
        "torch==2.13.0",
        "fairseq-fixed==0.12.3.1",  # fairseq 0.12 for Python >= 3.11; an sdist: see `make setup`
        "numpy==1.26.4",  # fairseq uses np.compat, which numpy 2 dropped
        "conllu==6.0.0",
        "regex==2026.11.15",  # stops a user's pattern that would never end
        "sacrebleu==2.6.0",
        "scipy==1.17.1",
        "tqdm==4.70.1",
    ],
    extras_require={
        "align": ["eflomal==2.0.0"],  # better word alignments for `llrnn prior`; a C program that pip builds
        "ngram": ["kenlm==0.3.0"],  # checks n-gram models in the tests; a C++ library that pip builds (needs cmake)
        "automata": ["pynini==2.1.7"],  # OpenFst's binary files; text, regular expressions and grammars do without
        "pieces": ["sentencepiece==0.2.3"],  # for fairseq's --bpe sentencepiece; `llrnn prior --pieces` does without
        "plots": ["matplotlib==3.11.2"],
        "test": [
            "hypothesis==6.170.15",
            "mypy==2.4.1",
            "pytest==9.2.0",
            "pytest-timeout==2.4.0",
            "ruff==0.17.5",
            "sentencepiece==0.2.3",
        ],
    },
    entry_points={"console_scripts": ["llrnn = fairseq_llrnn.cli.main:main"]},
    zip_safe=False,  # --user-dir names a folder
)
