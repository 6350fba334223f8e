"""Reads, checks, builds and forwards record batches (magic 2). KIP-98.

Knows the codecs and `Record`, and nothing of message sets.
"""
