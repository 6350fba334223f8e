"""Compares kproto's data source with the JVM connector: same cores, same topic, same run."""
