// Command kfake runs franz-go's fake Kafka broker on a port of this machine, until it is ended.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "kfake: the one argument is the port")
		os.Exit(2)
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "kfake:", err)
		os.Exit(2)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.Ports(port), kfake.SeedTopics(2, "greetings"),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kfake:", err)
		os.Exit(1)
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt)
	<-ended
}
