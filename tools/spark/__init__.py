"""Installs other releases of PySpark, alone and with the JVM connector; runs a cluster."""
