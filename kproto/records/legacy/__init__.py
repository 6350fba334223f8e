"""Message sets, the formats of magic 0 and 1, which were before record batches: read and built.

Stands on `magic2`: what a message set lacks has the same names, and a batch can become one.
"""
