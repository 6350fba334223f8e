"""What a client does: counted, told to hooks, logged. Knows no connection and no loop."""
