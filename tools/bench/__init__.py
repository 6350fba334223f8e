"""Benchmarks: each table compares kproto with another library, or two uses of kproto."""
