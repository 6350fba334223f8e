"""Tools of the source tree, which the wheel lacks: set-up, real Kafka brokers, benchmarks."""
