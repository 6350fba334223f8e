"""What the tests share: brokers, peers' interpreter, how a missing part is reported."""
