"""One program per client: a group member that logs its assignments, records and revocations.

    python -m tools.storm.members.with_kproto BOOTSTRAP TOPIC GROUP ASSIGNOR LOG [INSTANCE]

Each appends lines to LOG (see `lines`), leaves the group on SIGTERM, and takes some time for each
record, so that a record is always being processed. Its client id is the file name of LOG without
suffix, by which the broker's records name it.
"""
