"""The paper's expert (Dymetman & Xiao 2016, §6): it knows the number that answers a question, and nothing else.

It fires on every word that is no number, and on the one number n that the table has for the question. Whether a number
is due is not its business: the network learns that, by its gate.
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
    """The table is the file that the environment variable TOWNS names."""

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
