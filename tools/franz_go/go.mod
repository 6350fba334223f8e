// Names the release of franz-go whose own tests run on the embedded broker
// (tests/interop/test_franz_go.py).
module kproto/franz_go

go 1.26.0

require github.com/twmb/franz-go v1.22.3
