"""Searches over candidates, slots and within a limit of length."""
