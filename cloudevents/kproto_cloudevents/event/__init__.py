"""The event: its attributes in order, its data, and its typed extensions.

No module here knows an event format, a header or a binding.
"""
