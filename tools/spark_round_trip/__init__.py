"""Random events through the sink and the source of Spark: they come back as they were."""
