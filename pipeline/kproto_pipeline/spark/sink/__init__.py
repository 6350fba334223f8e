"""Rows to topics: checked, encoded column by column, and acknowledged before a task ends."""
