// Command kmsg answers the questions of `kproto fuzz` with franz-go's kmsg.
//
// It rewrites requests and responses. kmsg lacks Kafka's JSON form, so the operations decode and
// encode are unsupported; headers and stored records are unsupported, too.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type question struct {
	ID        int64  `json:"id"`
	Operation string `json:"operation"`
	Message   string `json:"message"`
	Version   int16  `json:"version"`
	Hex       string `json:"hex"`
}

// message has the methods that all requests and responses of kmsg have.
type message interface {
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
	SetVersion(int16)
	MaxVersion() int16
}

func main() {
	found := map[string]func() message{}
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		key := key
		if request := kmsg.RequestForKey(key); request != nil {
			name := kmsg.NameForKey(key)
			found[name+"Request"] = func() message { return kmsg.RequestForKey(key) }
			found[name+"Response"] = func() message { return kmsg.ResponseForKey(key) }
		}
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		answer := answer(found, asked)
		answer["id"] = asked.ID
		if err := out.Encode(answer); err != nil {
			os.Exit(1)
		}
	}
}

func answer(found map[string]func() message, asked question) (answer map[string]any) {
	if asked.Operation != "rewrite" {
		return map[string]any{"unsupported": "it does not have Kafka's JSON form"}
	}
	create := found[asked.Message]
	if create == nil {
		return map[string]any{"unsupported": "it does not have this message"}
	}
	read := create()
	if asked.Version > read.MaxVersion() {
		return map[string]any{"unsupported": "it does not have this version"}
	}
	data, err := hex.DecodeString(asked.Hex)
	if err != nil {
		return map[string]any{"failed": err.Error()}
	}
	defer func() {
		if cause := recover(); cause != nil {
			answer = map[string]any{"failed": fmt.Sprint("panic: ", cause)}
		}
	}()
	read.SetVersion(asked.Version)
	if err := read.ReadFrom(data); err != nil {
		return map[string]any{"refused": err.Error()}
	}
	return map[string]any{"hex": hex.EncodeToString(read.AppendTo(nil))}
}
