"""Plans micro-batches, tracks their offsets, and commits the offsets for a consumer group."""
