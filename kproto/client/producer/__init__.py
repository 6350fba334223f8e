"""Producing: `producer` accepts records, `accumulator` batches them, `sender` sends the batches."""
