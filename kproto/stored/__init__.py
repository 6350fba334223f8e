"""Kafka's own records as generated messages: control records, internal topics, the metadata log.

`control_records` reads and writes transaction markers and the control records of KRaft,
`coordinator_records` those of the group, transaction and share coordinators, `metadata_log` those
of `__cluster_metadata`. `aborted_transactions` finds aborted batches. Depends on `kproto.messages`
and on the `Record` of `kproto.records`; opens no socket.
"""
