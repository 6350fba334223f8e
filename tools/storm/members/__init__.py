"""Group members, a program per client; each logs its assignments, records and revocations.

    python -m tools.storm.members.with_kproto BOOTSTRAP TOPIC GROUP ASSIGNOR LOG [INSTANCE]

Each program appends lines to LOG (see `lines`) and leaves the group on SIGTERM. Most programs sleep
after each record or poll, like an application that processes records. The client id is the file
name of LOG without suffix; records of the group in `__consumer_offsets` contain this id.
"""
