"""Cluster metadata: leaders, coordinators, broker selection, routing of requests."""
