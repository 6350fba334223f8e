"""Tests implementations of Kafka's protocol with unusual and broken messages, and reports faults.

An implementation is a command that reads cases and writes answers as lines of JSON
(docs/how-to/fuzzing.md), or a running broker.
"""
