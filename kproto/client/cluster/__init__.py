"""What the client knows of the cluster, and who answers what. `view` is the way in."""
