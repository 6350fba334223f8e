"""The lowest layer: types of attribute values, exact JSON, media types.

No module of this package imports attributes, versions or events.
"""
