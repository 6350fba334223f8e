"""Turns specs into a package with one module per message, and writes its files.

Does not know the source of the specs; the caller passes the names of the files they came from.
"""
