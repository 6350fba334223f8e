"""Fetching: subscription state, start positions, sessions, buffer, offset reset and validation."""
