"""The paper's expert (Dymetman & Xiao 2016, §6): it gives the number that answers a question, and nothing else.

It is 1 for every word that is no number, and for the number n that the table has for the question. The network's gate
learns where a number is due.
"""

import os
from pathlib import Path

from fairseq_llrnn.systems.experts.expert import Expert, Firing

# What a question is about, by a word in it.
ABOUT = {
    "people": "inhabitants",
    "population": "inhabitants",
    "big": "inhabitants",
    "founded": "founded",
    "old": "founded",
    "since": "founded",
    "bridges": "bridges",
}


class KnowsTheTable(Expert):
    """The table is the file in the environment variable TOWNS."""

    def open(self, prior):
        self.numbers = {}
        for line in Path(os.environ["TOWNS"]).read_text(encoding="utf-8").splitlines():
            town, attribute, number = line.split("\t")
            self.numbers[town, attribute] = number
        self.towns = {town for town, _ in self.numbers}

    def fires(self, source, prefix):
        asked = [ABOUT[word] for word in source if word in ABOUT]
        towns = [word for word in source if word in self.towns]
        if not asked or not towns:
            return Firing()  # no question about the table: nothing to say
        number = self.numbers[towns[0], asked[0]]
        return Firing(everywhere=1.0, groups={"Pattern:number": -1.0}, exceptions={number: 1.0})
