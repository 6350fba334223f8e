"""Record batches as Kafka stores and sends them."""
