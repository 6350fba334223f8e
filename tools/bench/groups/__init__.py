"""Consumer groups: what a group costs a reader, how fast it begins and hands over, and assignors.

    python -m tools.bench.groups [reading] [members] [assignors]

`reading` compares a member with a reader of the same partitions by hand; `members` are the clients
as programs, which `with_…` know one each; `assignors` has ours beside aiokafka's.
"""
