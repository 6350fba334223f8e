"""An embedded Kafka broker, in memory, for tests."""
