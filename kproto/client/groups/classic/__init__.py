"""Members of classic groups (JoinGroup, SyncGroup, Heartbeat)."""
