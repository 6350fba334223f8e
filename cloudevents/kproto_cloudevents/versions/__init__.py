"""The versions of CloudEvents: their attributes, their rules, and conversion between them.

No module of this package imports events, data or documents.
"""
