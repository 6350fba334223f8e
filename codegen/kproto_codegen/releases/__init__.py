"""Imports a release of Kafka from its jars or sources, and stores it in a folder of facts.

The facts of a release are its message definitions without their `about` sentences, and its error
codes. `union` combines several releases.
"""
