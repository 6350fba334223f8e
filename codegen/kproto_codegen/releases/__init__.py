"""One release of Kafka: taken from its jars or sources, and kept as a folder of facts.

Must not know other releases: what two of them make is for `union`.
"""
