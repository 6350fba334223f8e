"""Other Sparks than our own: releases of PySpark by themselves, and with the JVM connector."""
