"""Tools of the source tree: set-up, a real Kafka, benchmarks. The wheel lacks these tools."""
