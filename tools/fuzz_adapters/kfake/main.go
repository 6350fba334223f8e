// Command kfake runs franz-go's fake Kafka cluster on ports of this machine, until Ctrl-C.
//
// The first argument is the port of its first broker, the second the number of brokers (by default
// one). Further arguments are keys of APIs that the brokers must not support. The command prints the
// addresses of the brokers, joined by commas. Then it runs each command that it reads, one per line,
// and answers with "ok" or an error:
//
//	shuffle                        gives every partition a random leader
//	move TOPIC PARTITION NODE      makes the node the leader of the partition
//	add NODE                       adds a node, and shuffles leaders
//	remove NODE                    removes a node: closes its port; its connections stay open
//	forget KEY TIMES               closes the connection of the next TIMES requests with the API key
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func main() {
	numbers := []int{}
	for _, argument := range os.Args[1:] {
		number, err := strconv.Atoi(argument)
		if err != nil {
			fail(err)
		}
		numbers = append(numbers, number)
	}
	if len(numbers) == 0 {
		fail(errors.New("the arguments are the port, the number of brokers, and keys of APIs to leave out"))
	}
	if len(numbers) == 1 {
		numbers = append(numbers, 1)
	}
	ports := make([]int, numbers[1])
	ports[0] = numbers[0] // 0, for the other brokers, is any free port
	options := []kfake.Opt{
		kfake.NumBrokers(len(ports)), kfake.Ports(ports...), kfake.SeedTopics(2, "greetings"),
	}
	if len(numbers) > 2 {
		offered := kversion.Stable()
		for _, key := range numbers[2:] {
			offered.SetMaxKeyVersion(int16(key), -1)
		}
		options = append(options, kfake.MaxVersions(offered))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		fail(err)
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	go obey(cluster)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt)
	<-ended
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kfake:", err)
	os.Exit(2)
}

func obey(cluster *kfake.Cluster) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := do(cluster, strings.Fields(lines.Text())); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("ok")
		}
	}
}

func do(cluster *kfake.Cluster, words []string) error {
	if len(words) == 0 {
		return errors.New("the line has no command")
	}
	topic, rest := "", words[1:]
	if words[0] == "move" && len(rest) > 0 {
		topic, rest = rest[0], rest[1:]
	}
	numbers := make([]int, 3)
	for at, word := range rest {
		number, err := strconv.Atoi(word)
		if err != nil || at == len(numbers) {
			return fmt.Errorf("%q is not a number, or one argument too many", word)
		}
		numbers[at] = number
	}
	switch words[0] {
	case "shuffle":
		cluster.ShufflePartitionLeaders()
	case "move":
		return cluster.MoveTopicPartition(topic, int32(numbers[0]), int32(numbers[1]))
	case "add":
		_, _, err := cluster.AddNode(int32(numbers[0]), 0)
		return err
	case "remove":
		return cluster.RemoveNode(int32(numbers[0]))
	case "forget":
		for range numbers[1] { // each call controls one request
			cluster.ControlKey(int16(numbers[0]), func(kmsg.Request) (kmsg.Response, error, bool) {
				return nil, errors.New("closed by the command forget"), true
			})
		}
	default:
		return fmt.Errorf("there is no command %q", words[0])
	}
	return nil
}
