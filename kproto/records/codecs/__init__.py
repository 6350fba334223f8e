"""Compresses and decompresses bytes; knows no batch and no message.

`compression` has the table of codecs. Each codec has a module, which uses `bounded`.
"""
