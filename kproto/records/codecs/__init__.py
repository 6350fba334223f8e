"""Compresses and decompresses the records of a batch as one byte string, without decoding them.

`compression` has the table of codecs. Each codec has a module; `bounded` has the functions that
limit the decompressed size.
"""
