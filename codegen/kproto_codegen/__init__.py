"""From Kafka's message definitions to Python: importer, rules, union of releases, generator."""
