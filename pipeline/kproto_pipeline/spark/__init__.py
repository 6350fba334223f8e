"""The Spark data source `kproto`: its options, what it plans, and what one task reads."""
