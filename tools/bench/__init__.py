"""Benchmarks: each table compares kproto with a peer, or two uses of kproto, in one run."""
