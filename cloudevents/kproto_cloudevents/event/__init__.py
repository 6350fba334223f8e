"""The event: attributes in their order, and data. Extensions are read from it by declaration.

No module here knows an event format, a header or a binding.
"""
