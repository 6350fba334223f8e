"""Installs other releases of PySpark, alone and with the JVM connector, and runs a cluster."""
