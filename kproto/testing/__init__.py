"""Helpers for tests of Kafka clients: a clock, message instances and hypothesis strategies."""
