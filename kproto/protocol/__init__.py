"""Implements Kafka's protocol without I/O: both sides of a connection as functions and objects.

It covers framing, headers, correlation, version negotiation, the ApiVersions fallback, error codes,
the embedded consumer protocol and SASL exchanges. Client, broker and proxy add sockets, clocks and
event loops.
"""
