"""Reads and writes the records that Kafka itself stores, as generated messages.

`control_records` has transaction markers and the control records of KRaft. `transaction_markers`
has the control batches of commits and aborts. `coordinator_records` has the records of the group,
transaction and share coordinators. `metadata_log` has the records of `__cluster_metadata` and
`__remote_log_metadata`. `aborted_transactions` finds the batches of aborted transactions. Imports
`kproto.messages`, `kproto.records` and `kproto.wire`; has no I/O.
"""
