"""Compresses and decompresses the bytes of a batch or message; knows neither of the two.

`compression` has the table of codecs. Each codec has a module, which stands on `bounded`.
"""
