"""Checks the language of this project: sentences, words, names and commit subjects.

`python -m tools.language` is a part of `make lint`. The rules are data in `rules.toml`, and all
exceptions from them are listed in `exceptions.toml`.
"""
