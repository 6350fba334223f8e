"""The operations of Kafka's Admin interface without `await`."""
