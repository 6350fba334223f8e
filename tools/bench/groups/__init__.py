"""Measures consumer groups: cost per record, time of a start and of a handover, assignors.

    python -m tools.bench.groups [reading] [running] [members] [assignors]

`reading` compares a member with a consumer that reads the same partitions without a group, and
`running` compares `run` with iteration. `members` runs each client as a program (`with_…`).
`assignors` compares kproto's assignors with aiokafka's.
"""
