"""`GroupConsumer.run`: processes records concurrently, and commits the offsets of processed ones.

`tracker` and `shards` decide which records may be processed now, and up to which offset all are
processed; `failure_policy` decides about a record that failed; `pool` runs the tasks.
"""
