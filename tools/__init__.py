"""Tools of the source tree: set-up, a real Kafka, benchmarks. Never in the wheel."""
