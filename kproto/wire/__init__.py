"""Primitives of Kafka's wire format: knows bytes, and no message."""
