"""The message definitions as data: the model, one version's wire layout, and the union."""
