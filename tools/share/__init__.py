"""Runs members of share groups: Java's KafkaShareConsumer, and a program that tests kill."""
