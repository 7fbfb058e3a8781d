// captures writes the captures that the analysis' TCP figures are tested on: real TCP of this kernel between two nodes,
// over the link model with losses, as radiod's captures have it at both nodes. It needs root. Another run has other losses.
//
//	go run ./test/captures analysis/tests/testdata/tcp
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
)

const (
	mtu        = 1500
	snapLength = 96
	// patience for a transfer over a lossy link.
	patience = 2 * time.Minute
)

// lossy in both directions, so that segments and acknowledgements are lost alike.
var lossy = link.Parameters{RateBitsPerSecond: 500e3, Delay: 60 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.12}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "captures: want one folder to write to")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "captures:", err)
		os.Exit(1)
	}
}

// recording is a node's capture, by the radio's thread.
type recording struct{ content []byte }

func (r *recording) Frame(direction radio.Direction, data []byte) {
	kept := data[:min(len(data), snapLength)]
	r.content = pcapng.AppendPacket(r.content, clock.Realtime(), direction == radio.Out, len(data), kept)
}

func run(folder string) (err error) {
	engine, err := radio.New(radio.Options{})
	if err != nil {
		return err
	}
	network, err := engine.NewNetwork(radio.NetworkOptions{Model: link.New(link.Config{Seed: 7, Default: lossy}), MTU: mtu})
	if err != nil {
		return err
	}
	defer network.Close()
	var nodes []*radiotest.Node
	for nem := 1; nem <= 2; nem++ {
		n, err := radiotest.NewNode(nem, mtu)
		if err != nil {
			return err
		}
		defer n.Close()
		nodes = append(nodes, n)
	}
	ports, err := radiotest.Join(network, nodes...)
	if err != nil {
		return err
	}
	recordings := make([]*recording, len(ports))
	for i, p := range ports {
		defer p.Detach()
		recordings[i] = &recording{content: pcapng.AppendSection(nil, "radio0", fmt.Sprintf("node-%d", i+1))}
		p.SetTap(recordings[i])
	}
	if err := talk(nodes[0], nodes[1]); err != nil {
		return err
	}
	for i, p := range ports {
		p.SetTap(nil)
		file := filepath.Join(folder, fmt.Sprintf("node-%d.pcapng", i+1))
		if err := os.WriteFile(file, recordings[i].content, 0o644); err != nil { //nolint:gosec // it is for everybody
			return err
		}
	}
	return nil
}

// talk carries a bulk transfer, whose losses make duplicate acknowledgements, and at the same time short messages in
// both directions, whose lost acknowledgements make needless retransmissions.
func talk(a, b *radiotest.Node) error {
	bulk := func(c net.Conn) error { return write(c, 100, 1000, 0) }
	// So seldom that each message waits for its own acknowledgement, and is sent again where that is lost.
	short := func(c net.Conn) error { return write(c, 40, 200, 500*time.Millisecond) }
	none := func(net.Conn) error { return nil }
	var wait sync.WaitGroup
	failed := make([]error, 2)
	wait.Go(func() { failed[0] = connect(a, b, 1883, bulk, none) })
	wait.Go(func() { failed[1] = connect(b, a, 5672, short, short) })
	wait.Wait()
	return errors.Join(failed...)
}

func write(c net.Conn, messages, length int, period time.Duration) error {
	for range messages {
		if _, err := c.Write(make([]byte, length)); err != nil {
			return err
		}
		time.Sleep(period)
	}
	return nil
}

// connect opens a connection; each end does its part, says that it is done and reads until the other one has.
func connect(client, server *radiotest.Node, port int, ofClient, ofServer func(net.Conn) error) error {
	address := net.JoinHostPort(server.Address.IP.String(), fmt.Sprint(port))
	var listener net.Listener
	if err := netns.Do(server.Namespace, func() (err error) {
		listener, err = net.Listen("tcp4", address)
		return err
	}); err != nil {
		return err
	}
	defer listener.Close()
	served := make(chan error, 1)
	go func() {
		c, err := listener.Accept()
		if err == nil {
			err = exchange(c, ofServer)
		}
		served <- err
	}()
	var c net.Conn
	if err := netns.Do(client.Namespace, func() (err error) {
		c, err = net.DialTimeout("tcp4", address, patience)
		return err
	}); err != nil {
		return err
	}
	return errors.Join(exchange(c, ofClient), <-served)
}

func exchange(c net.Conn, part func(net.Conn) error) error {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, c)
		read <- err
	}()
	err := part(c)
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		err = tcp.CloseWrite()
	}
	return errors.Join(err, <-read)
}
