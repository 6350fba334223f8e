"""Record batches, the format of magic 2: read, checked, built, passed on. KIP-98.

Knows the codecs and `Record`, and nothing of message sets.
"""
