"""What is done to the cluster rather than read from it or written to it."""
