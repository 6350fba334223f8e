"""Reads the versions of each release of Apache Kafka from its own clients jar."""
