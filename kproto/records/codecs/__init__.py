"""Compressing and decompressing of the bytes of a batch or message; knows neither.

`compression` has the table; each codec has a module, on top of `bounded`.
"""
