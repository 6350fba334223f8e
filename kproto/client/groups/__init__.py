"""Consumer groups of the classic kind: who reads what, and how members agree on it."""
