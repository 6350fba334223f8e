"""Reads the API versions of each release of Apache Kafka from its clients jar."""
