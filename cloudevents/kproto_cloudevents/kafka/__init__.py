"""The Kafka protocol binding 1.0: reads events from records, and writes them to records.

No module of this package imports sockets, a client or another binding.
"""
