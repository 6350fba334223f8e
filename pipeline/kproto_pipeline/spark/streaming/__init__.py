"""Plans micro-batches, tracks their offsets, and commits these for a consumer group."""
