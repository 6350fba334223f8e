"""Options of the data source: text to plain data, and errors that name them. Knows no Spark."""
