"""Kafka's protocol without I/O: both sides of a connection as plain functions and objects.

Framing, headers, correlation, version negotiation, the ApiVersions fallback, error codes and SASL
exchanges. Nothing here knows a socket, a clock or an event loop; a client, a broker and a proxy
are each a thin shell over it.
"""
