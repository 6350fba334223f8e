"""Measures consumer groups: CPU time per record, start of a member, handover, assignors.

    python -m tools.bench.groups [reading] [running] [members] [assignors]

`reading` compares a member with a consumer that reads the same partitions without a group, and
`running` compares `run` with iteration. `members` measures how fast members start, and how fast
they take over the partitions of a member that leaves. The module runs each client as a program
(`with_…`). `assignors` compares kproto's assignors with aiokafka's.
"""
