"""`GroupConsumer.run`: processes records concurrently, and commits their offsets.

`tracker` and the shards decide which records may be processed now, and track incomplete offsets.
`failure_policy` decides the next step for a failed record. `pool` runs the tasks.
"""
