"""Generates Python from Kafka's message definitions: imports, checks and unites releases first."""
