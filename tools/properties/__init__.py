"""Lists the properties of Kafka's Java clients and of librdkafka, from the libraries themselves."""
