// An app of one's own in Go: sends positions by UDP broadcast, as report.py does, and logs message events.
//
//	go-reporter ADDRESS:PORT PERIOD
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// event is one line of the message log.
type event struct {
	TS       int64  `json:"ts"` // nanoseconds since 1970
	Instance string `json:"instance"`
	Status   string `json:"status"` // triggered, sent, received or processed
	ID       string `json:"id"`
	Topic    string `json:"topic"`
	Bytes    int    `json:"bytes"`
}

type message struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	Text  string `json:"text"`
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err) // a code other than 0, so that the agent starts the app again
	}
}

// openLog appends to the file that VIGNETTE_MESSAGE_LOG names. Without it (messageLog: Stdout) the events go
// to standard output.
func openLog() (io.Writer, error) {
	path := os.Getenv("VIGNETTE_MESSAGE_LOG")
	if path == "" {
		return os.Stdout, nil
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
}

func run(address, period string) error {
	events, err := openLog()
	if err != nil {
		return err
	}
	every, err := time.ParseDuration(period)
	if err != nil {
		return err
	}
	out, err := net.Dial("udp4", address) // Go sets SO_BROADCAST itself
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM) // how the timeline stops an app
	tick := time.NewTicker(every)
	instance := os.Getenv("VIGNETTE_INSTANCE")
	for number := 1; ; number++ {
		if err := send(out, events, instance, number); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
	}
}

// send sends one message and logs it as one write of one whole line.
func send(out net.Conn, events io.Writer, instance string, number int) error {
	m := message{ID: fmt.Sprintf("%s-%d", instance, number), Topic: "own/" + instance, Text: "57.1 N 9.9 E"}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ts := time.Now().UnixNano() // before the call, as the receiver may have the message before it returns
	if _, err := out.Write(data); err != nil {
		return err
	}
	return json.NewEncoder(events).Encode(event{TS: ts, Instance: instance, Status: "sent", ID: m.ID, Topic: m.Topic, Bytes: len(data)})
}
