package emaned

import (
	"context"
	"errors"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radiod/netns"
)

// maxDatagram of UDP over IPv4.
const maxDatagram = 65507

var errNoChannel = errors.New("EMANE's processes are not running")

// otaRelay is the relay of over-the-air datagrams to other hosts. Few cluster networks carry multicast, so
// they take the same path as the native engine's frames.
type otaRelay struct {
	channel *emane.OTAChannel
	done    chan error
}

// Receive passes an over-the-air datagram of another host to the processes here.
func (d *Driver) Receive(datagram []byte) error {
	air := d.channel.Load()
	if air == nil {
		return errNoChannel
	}
	return air.Send(datagram)
}

// relay starts the relay if members are on other hosts, and ends it otherwise.
func (p *pod) relay(in *Input) error {
	if !in.Distributed {
		p.endRelay()
		return nil
	}
	if p.relayed != nil {
		select {
		case err := <-p.relayed.done:
			p.relayed.done <- err // for endRelay
			return err
		default:
			return nil
		}
	}
	var air *emane.OTAChannel
	err := netns.Do(p.namespace, func() (err error) {
		air, err = emane.OpenOTAChannel(context.Background(), emane.InPod(in.Network, 0).OTAGroup, emane.PodDevice)
		return err
	})
	if err != nil {
		return err
	}
	p.relayed = &otaRelay{channel: air, done: make(chan error, 1)}
	p.channel.Store(air)
	go func(done chan<- error) { done <- p.ship(air) }(p.relayed.done)
	return nil
}

// ship ships what processes send, until the channel is closed.
func (p *pod) ship(air *emane.OTAChannel) error {
	buffer := make([]byte, maxDatagram)
	for {
		n, err := air.Receive(buffer)
		if err != nil {
			return err
		}
		p.Ship(buffer[:n])
	}
}

func (p *pod) endRelay() {
	if p.relayed == nil {
		return
	}
	p.channel.Store(nil)
	_ = p.relayed.channel.Close()
	<-p.relayed.done
	p.relayed = nil
}
