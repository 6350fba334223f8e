"""Connections to brokers: handshake, authentication, in-flight requests, the pool."""
