"""Compresses and decompresses the records part of a batch as plain bytes.

`compression` has the table of codecs. Each codec has a module; `bounded` has the functions that
limit the decompressed size.
"""
