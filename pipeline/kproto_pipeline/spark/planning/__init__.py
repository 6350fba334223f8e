"""Plans offset ranges: lists log offsets, and resolves the options of a read against them."""
