"""Foundations of the client: retries, errors of groups, tasks, guards of the event loop."""
