"""Assignors: which member of a group reads which partition, as plain functions on plain data."""
