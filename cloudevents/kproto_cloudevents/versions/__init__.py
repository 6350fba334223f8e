"""The versions of CloudEvents: their attributes, their rules, and conversion between them.

No module here knows an event, data or a document.
"""
