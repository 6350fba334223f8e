"""The Spark data source `kproto`: its options, its readers of batches and streams, its sink."""
