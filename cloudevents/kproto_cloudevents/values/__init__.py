"""The ground: what a text may mean by itself. Types of attribute values, exact JSON, media types.

No module here knows an attribute, a version or an event.
"""
