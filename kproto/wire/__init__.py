"""Reads and writes the primitive types of Kafka's wire format, and defines kproto's errors."""
