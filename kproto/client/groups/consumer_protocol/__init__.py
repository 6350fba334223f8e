"""The member of a consumer group, whose broker says who reads what (KIP-848)."""
