"""Benchmarks: each table compares kproto with a named peer, measured in the same run."""
