"""The versions of CloudEvents: which attributes each has, by which rules, and what becomes of them
in another version. No module here knows an event, data or a document.
"""
