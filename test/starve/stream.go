package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/trafficconfig"
)

const streamCommand = "stream"

// stream is a client with one TCP connection and no answers, like MQTT with QoS 0: each message is a line.
// The node without messages of its own receives those of all others.
func stream() error {
	config, err := appinstance.ReadConfig[trafficconfig.Config](os.Args[2])
	if err != nil {
		return err
	}
	log, err := messagelog.Open()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	event := func(status messagelog.Status, id, topic string) {
		_ = log.Write(messagelog.Record{TimeNanoseconds: clock.Realtime(), Instance: config.Instance, Status: status, ID: id, Topic: topic})
	}
	if config.Publish == nil {
		err = receiveStreams(ctx, config.Broker, event)
	} else {
		err = sendStream(ctx, config, event)
	}
	return errors.Join(err, log.Flush())
}

func receiveStreams(ctx context.Context, address string, event func(messagelog.Status, string, string)) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	for {
		conn, err := listener.Accept()
		if err != nil {
			return nil //nolint:nilerr // it was closed
		}
		go func() {
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				if fields := strings.Fields(lines.Text()); len(fields) == 3 {
					event(messagelog.Received, fields[0], fields[1])
				}
			}
		}()
	}
}

func sendStream(ctx context.Context, config trafficconfig.Config, event func(messagelog.Status, string, string)) error {
	start, err := appinstance.Start()
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", config.Broker)
	for ; err != nil && ctx.Err() == nil; conn, err = net.Dial("tcp", config.Broker) {
		time.Sleep(100 * time.Millisecond)
	}
	for i, m := range config.Publish.Messages {
		if clock.SleepUntil(ctx, start.Add(time.Duration(m.AtSeconds*1e9))) != nil {
			break
		}
		id := fmt.Sprintf("%s_%d", config.Entity, i+1)
		event(messagelog.Triggered, id, m.Topic)
		event(messagelog.Sent, id, m.Topic)
		if _, err := fmt.Fprintf(conn, "%s %s %s\n", id, m.Topic, strings.Repeat("x", m.Bytes)); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}
