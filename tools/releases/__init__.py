"""What each release of Apache Kafka speaks, read from its own clients jar."""
