"""Merges several releases into a single definition for each message, and compares two releases."""
