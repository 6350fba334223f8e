"""Benchmarks: a table compares kproto with other libraries, or one use of kproto with another."""
