"""Benchmarks: in one run, each table compares kproto with a peer or with other code of its own."""
