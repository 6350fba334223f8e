"""Reads and builds message sets (magic 0 and 1), Kafka's formats before record batches (magic 2).

Imports `magic2`: `LegacyBatch` is a `RecordBatch`, and `down_convert` reads batches of magic 2.
"""
