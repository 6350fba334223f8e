"""Lists the properties of Kafka's Java clients and of librdkafka, as they report them."""
