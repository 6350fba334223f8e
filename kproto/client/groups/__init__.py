"""Membership in consumer groups, of the classic and of the consumer protocol."""
