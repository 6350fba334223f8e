"""The lowest layer: types of attribute values, exact JSON, media types.

No module here knows an attribute, a version or an event.
"""
