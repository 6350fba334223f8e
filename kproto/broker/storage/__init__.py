"""Stores one partition: its log, its leader epochs, and the state of its producers.

Imports no protocol message and no handler, and never waits.
"""
