"""One program per client: a group member that logs its assignments, records and revocations.

    python -m tools.storm.members.with_kproto BOOTSTRAP TOPIC GROUP ASSIGNOR LOG [INSTANCE]

Each appends lines to LOG (`lines`), leaves the group in order on SIGTERM, and takes some time over
each record, so that a record is always being processed. Its client id is the name of LOG, which the
broker's records then contain.
"""
