"""Connections to brokers: one, and all those of a client. Know addresses, not who leads what."""
