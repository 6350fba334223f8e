"""What several releases make together: one definition a message, and what changed between two.

Must not know how a release was read, nor what is generated of the union.
"""
