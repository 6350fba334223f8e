"""Foundations of the client: retries, the loop guard, tasks, yielding to the event loop."""
