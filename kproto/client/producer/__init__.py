"""Producing: `producer` takes records, `accumulator` batches them, `sender` sends the batches."""
