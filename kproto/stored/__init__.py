"""What Kafka itself stores in records, as generated messages: read, and written for a test.

`control` (markers of transactions, leader changes, snapshots), `coordinator` (offsets, groups,
transactions, share groups), `metadata_log` (KRaft). Stands on `kproto.messages` and on the `Record`
of `kproto.records`; knows no batch, no socket and no topic's meaning.
"""
