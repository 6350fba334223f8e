"""Combines several releases into one definition per message, and compares two releases.

Does not know how a release was read, nor the code generated from the union.
"""
