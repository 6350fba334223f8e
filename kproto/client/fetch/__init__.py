"""Fetching: subscription state, fetch sessions, the fetch buffer, offset reset and validation."""
