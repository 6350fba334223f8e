"""From records to acknowledgements: `producer` takes, `accumulator` decides, `sender` waits.

`lines` keeps the order of the calls that wait.
"""
