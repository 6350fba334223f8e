"""Topics as a stream: which offsets each micro-batch has, and the group that follows them."""
