"""The storage of one partition: its log, its leader epochs, and the state of its producers.

Knows no message, no handler and no session, and does not wait.
"""
