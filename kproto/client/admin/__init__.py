"""Administration of the cluster: creating and deleting topics."""
