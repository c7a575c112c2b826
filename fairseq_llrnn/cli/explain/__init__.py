"""`llrnn explain`: why a trained model gave each word of a sentence, or of a translation, its probability."""
