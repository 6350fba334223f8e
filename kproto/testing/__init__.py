"""What tests of Kafka programs need; knows all of `kproto`."""
