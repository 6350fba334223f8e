"""Reads and builds message sets (magic 0 and 1), the formats before record batches.

Depends on `magic2`: a message set has the attributes of a batch, and a batch can be converted to
one.
"""
