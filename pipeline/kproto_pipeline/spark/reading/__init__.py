"""Reads offset ranges: plans a batch on the driver, and fetches its ranges in the tasks."""
