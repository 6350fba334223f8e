"""Adapters between other implementations of Kafka's messages and `kproto fuzz`."""
