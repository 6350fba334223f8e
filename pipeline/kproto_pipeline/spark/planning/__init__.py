"""Plans the offset ranges of a read: lists log offsets, and resolves the options against them."""
