"""Committed offsets: their state, requests and the committer."""
