"""Source text of an expert, for tests that load it as a user's file."""

MIRROR = '''
from fairseq_llrnn.systems.experts.expert import Expert, Firing


class Mirror(Expert):
    """Knows which words the source spells backwards."""

    def open(self, prior):
        self.known = set(prior.symbols)

    def fires(self, source, prefix):
        words = [word[::-1] for word in source]
        return Firing(-1.0, {"POS:VERB": 0.5}, {word: 1.0 + i for i, word in enumerate(words) if word in self.known})
'''
