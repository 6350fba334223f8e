"""The event formats, which encode a whole event as one document, and their registry.

No module of this package imports a protocol binding, such as `kafka` or `pulsar`.
"""
