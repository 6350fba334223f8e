"""What passed between clients and brokers, to be looked at. Knows neither client nor broker."""
