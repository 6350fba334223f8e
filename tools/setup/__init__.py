"""Sets up the environment of a checkout: Java, virtual environments of other clients, jars."""
