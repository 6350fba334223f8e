// Reads and writes events with the official SDK for Go; tests/interop/sdks/README.md has the lines.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/IBM/sarama"
	kafka "github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
)

type question struct {
	Headers    [][2]string
	Value      []byte
	Key        *string
	Attributes map[string]string
	Data       []byte
	Object     map[string]any
	Mode       string
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		answer, err := answered(asked)
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func answered(asked question) (map[string]any, error) {
	var found *event.Event
	var err error
	if asked.Headers != nil {
		found, err = read(asked)
	} else {
		found, err = made(asked)
	}
	if err != nil {
		return nil, err
	}
	if asked.Mode != "" {
		return written(asked.Mode, found)
	}
	// The encoding as JSON has all attributes; the data is shown separately.
	answer := map[string]any{}
	shown := found.Clone()
	shown.DataEncoded = nil
	text, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	answer["data"] = found.DataEncoded // nil becomes null, and bytes Base64
	if invalid := found.Validate(); invalid != nil {
		answer["invalid"] = strings.SplitN(invalid.Error(), ":", 2)[0]
	}
	return answer, nil
}

func read(asked question) (*event.Event, error) {
	record := &sarama.ConsumerMessage{Topic: "t", Value: asked.Value}
	if asked.Key != nil {
		record.Key = []byte(*asked.Key)
	}
	for _, header := range asked.Headers {
		record.Headers = append(
			record.Headers,
			&sarama.RecordHeader{Key: []byte(header[0]), Value: []byte(header[1])},
		)
	}
	return binding.ToEvent(context.Background(), kafka.NewMessageFromConsumerMessage(record))
}

func made(asked question) (*event.Event, error) {
	found := event.New("1.0")
	for name, text := range asked.Attributes {
		switch name {
		case "id":
			found.SetID(text)
		case "source":
			found.SetSource(text)
		case "type":
			found.SetType(text)
		case "datacontenttype":
			found.SetDataContentType(text)
		default:
			found.SetExtension(name, text)
		}
	}
	contentType := asked.Attributes["datacontenttype"]
	if asked.Object != nil {
		return &found, found.SetData(contentType, asked.Object)
	}
	if asked.Data != nil {
		return &found, found.SetData(contentType, asked.Data)
	}
	return &found, nil
}

func written(mode string, found *event.Event) (map[string]any, error) {
	where := binding.WithForceBinary(context.Background())
	if mode == "structured" {
		where = binding.WithForceStructured(context.Background())
	}
	record := &sarama.ProducerMessage{}
	if err := kafka.WriteProducerMessage(where, (*binding.EventMessage)(found), record); err != nil {
		return nil, err
	}
	answer := map[string]any{"value": nil, "key": nil}
	if record.Value != nil {
		answer["value"], _ = record.Value.Encode()
	}
	if record.Key != nil {
		key, _ := record.Key.Encode()
		answer["key"] = string(key)
	}
	return answer, nil
}
