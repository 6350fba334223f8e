"""Parses the options of the data source into typed options. Errors name the option."""
