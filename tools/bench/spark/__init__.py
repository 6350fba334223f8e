"""Compares kproto's data source with the JVM connector on the same cores and topic, in one run."""
