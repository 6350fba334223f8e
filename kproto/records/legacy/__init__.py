"""Reads and builds message sets (magic 0 and 1), the formats before record batches.

Stands on `magic2`: a message set offers the attributes of a batch, and a batch can become one.
"""
