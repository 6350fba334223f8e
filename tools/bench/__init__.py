"""Benchmarks: each table stands beside a named peer that was measured in the same run."""
