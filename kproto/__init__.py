"""Kafka from its own message definitions."""
