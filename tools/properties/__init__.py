"""Which properties Kafka's Java clients and librdkafka know: names, read from themselves."""
