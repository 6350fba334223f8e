"""Assigns the partitions of a group to its members: plain functions on plain data."""
