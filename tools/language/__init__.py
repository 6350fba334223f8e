"""Checks the language of this project: sentences, words, names and commit subjects.

`make lint` runs `python -m tools.language`. `rules.toml` has the rules, and `exceptions.toml` lists
all exceptions from the rules.
"""
