package emaned

import (
	"context"
	"errors"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radiod/netns"
)

// maxDatagram of UDP over IPv4.
const maxDatagram = 65507

var errNoAir = errors.New("EMANE's processes are not running")

// relayed is the relay of over-the-air datagrams to other hosts. Few cluster networks carry multicast, so
// they take the same path as the native engine's frames.
type relayed struct {
	air  *emane.Air
	done chan error
}

// Hear passes an over-the-air datagram of another host to the processes here.
func (d *Driver) Hear(datagram []byte) error {
	air := d.air.Load()
	if air == nil {
		return errNoAir
	}
	return air.Send(datagram)
}

// relay starts the relay if members are on other hosts, and ends it otherwise.
func (p *pod) relay(in *Input) error {
	if !in.Spread {
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
	var air *emane.Air
	err := netns.Do(p.namespace, func() (err error) {
		air, err = emane.OpenAir(context.Background(), emane.InPod(in.Network, 0).OTAGroup, emane.PodDevice)
		return err
	})
	if err != nil {
		return err
	}
	p.relayed = &relayed{air: air, done: make(chan error, 1)}
	p.air.Store(air)
	go func(done chan<- error) { done <- p.ship(air) }(p.relayed.done)
	return nil
}

// ship ships what processes send, until the channel is closed.
func (p *pod) ship(air *emane.Air) error {
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
	p.air.Store(nil)
	_ = p.relayed.air.Close()
	<-p.relayed.done
	p.relayed = nil
}
