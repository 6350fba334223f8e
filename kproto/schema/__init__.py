"""The message definitions as data: the model, the wire layout of each version, and the union."""
