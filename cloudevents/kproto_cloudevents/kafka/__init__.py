"""The Kafka protocol binding 1.0: a record to an event, an event to a record.

No module here knows a socket, a client or another binding.
"""
