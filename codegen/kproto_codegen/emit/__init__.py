"""From specs to Python: a package with one module a message, and the files it stands in.

Must not know where the specs come from; it is told which files they were made of.
"""
