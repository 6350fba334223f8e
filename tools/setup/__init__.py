"""Sets up the environment of a checkout: Java, virtual environments of peers, fetched jars."""
