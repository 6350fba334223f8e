"""Writes random events with the sink, reads them with the source, and compares the events."""
