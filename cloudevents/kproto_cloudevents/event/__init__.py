"""The event: its attributes in order, its data, and its typed extensions.

No module of this package imports an event format, the headers or a binding.
"""
