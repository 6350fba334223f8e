"""Implements retries, group errors, tasks and event loop guards for all of the client."""
