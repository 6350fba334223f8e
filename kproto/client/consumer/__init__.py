"""Consumers: the poll loop, plain and group consumers, the rebalance listener, auto-commit."""
