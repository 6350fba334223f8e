"""Measures consumer groups: cost per record, time to start and to take over, and assignors.

    python -m tools.bench.groups [reading] [members] [assignors]

`reading` compares a member with a consumer of the same assigned partitions; `members` runs the
clients as programs, one `with_…` module each; `assignors` compares ours with aiokafka's.
"""
