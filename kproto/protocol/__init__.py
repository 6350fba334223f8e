"""Implements Kafka's protocol without I/O: both sides of a connection as functions and objects.

Framing, headers, correlation, version negotiation, the ApiVersions fallback, error codes and SASL
exchanges. Knows no socket, no clock and no event loop; client, broker and proxy add these.
"""
