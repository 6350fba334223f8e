"""Imports one release of Kafka from its jars or sources, and stores it as a folder of facts.

Does not know other releases: `union` combines releases.
"""
