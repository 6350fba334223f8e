"""The terminal face of kproto."""
