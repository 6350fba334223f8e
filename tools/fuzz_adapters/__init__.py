"""Adapters that put other implementations behind the line protocol of `kproto fuzz`."""
