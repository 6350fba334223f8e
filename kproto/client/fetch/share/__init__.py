"""Fetches and acknowledges the records of share groups (KIP-932)."""
