"""Plans micro-batches, follows their offsets, and commits them for a consumer group."""
