"""The event formats, which encode a whole event as one document, and their registry.

No module here knows a header, a property or a binding.
"""
