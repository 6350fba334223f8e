"""One module per client, all with the same works, and their shared code; `worker` runs one work."""
