"""The Kafka protocol binding 1.0: reads events from records, and writes them to records.

No module here knows a socket, a client or another binding.
"""
