"""What one partition keeps: its log and the producers that write to it.

Knows no message, no handler, no session, and does not wait.
"""
