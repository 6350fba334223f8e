"""The event formats: a whole event as one document, and which formats are known.

No module here knows a header, a property or a binding.
"""
