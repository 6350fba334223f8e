"""Metrics, hooks and log lines of a client, without connections and event loop."""
