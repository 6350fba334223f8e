"""Bases of the client: retries, the loop guard, tasks, producer records."""
