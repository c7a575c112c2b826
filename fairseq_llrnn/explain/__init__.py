"""Why a word has its probability: the terms of its score."""
