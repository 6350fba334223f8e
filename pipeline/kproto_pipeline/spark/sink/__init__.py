"""Writes rows to topics: checks them, encodes them by column, and waits for acknowledgements."""
