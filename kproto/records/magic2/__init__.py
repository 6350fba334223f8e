"""Reads, checks, builds and re-stamps record batches (magic 2). KIP-98.

Imports the codecs and `Record`, and nothing of message sets (`legacy`).
"""
