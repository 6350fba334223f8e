"""One member of a group as a program, for each client: what it is given, reads and gives up.

    python -m tools.storm.members.with_kproto BOOTSTRAP TOPIC GROUP ASSIGNOR LOG [INSTANCE]

Each appends lines to LOG (`lines`), leaves the group in order on SIGTERM, and takes some time over
each record, so that there is always one in its hands. Its client id is the name of LOG: so do the
broker's records name it.
"""
