"""One module a client, all with the same works, and what they share; `worker` runs one of them."""
