"""Helpers for tests of Kafka programs: clocks, message instances, hypothesis strategies."""
