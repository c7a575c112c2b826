"""A network of characters that spells unknown words, beside the n-grams of their open class."""
