"""Adapters: other implementations of the protocol behind the lines of `kproto fuzz`."""
