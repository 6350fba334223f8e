"""Reads the message definitions, and compares versions and releases.

`definitions` has the union: the definitions of all Kafka releases merged into one per message.
`layout` has the wire layout of a message version.
"""
