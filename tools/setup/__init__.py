"""Sets up a checkout's environment: Java, virtual environments of peers, fetched jars."""
