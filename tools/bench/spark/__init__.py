"""Spark with our data source beside Spark with the JVM connector: same cores, topic and run."""
