"""Backgrounds b(K, x): the weight of every next token that is known before training.

contract.py says what a background must answer; each other file is one kind.
"""
