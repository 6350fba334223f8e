"""Reads, checks and builds record batches (magic 2), and changes their offsets. KIP-98.

Imports the codecs and `Record`, and nothing of message sets (`legacy`).
"""
