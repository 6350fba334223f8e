"""Metrics, hooks and log lines of a client. Knows no connection and no loop."""
