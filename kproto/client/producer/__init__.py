"""From records to acknowledgements: `producer` takes, `accumulator` decides, `sender` waits."""
