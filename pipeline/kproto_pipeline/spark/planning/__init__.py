"""What is read: which ranges of offsets, decided on plain data, and asked of the cluster."""
