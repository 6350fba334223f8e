"""Generates Python classes from Kafka's message definitions, merged over several releases."""
