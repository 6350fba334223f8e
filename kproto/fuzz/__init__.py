"""Sends odd and broken messages to any implementation of Kafka's protocol, and reports its faults.

An implementation is a command that answers lines of JSON (`case`, docs/how-to/fuzzing.md), or a
broker that listens (`broker`).
"""
