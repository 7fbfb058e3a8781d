package emaned

import (
	"context"
	"errors"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radiod/netns"
)

// maxDatagram of UDP over IPv4.
const maxDatagram = 65507

var errNoAir = errors.New("EMANE's processes are not there to hear it")

// relayed is what processes send over the air while it goes to other hosts. Hardly any cluster's own network carries multicast, so that it
// goes the way of the native engine's frames.
type relayed struct {
	air  *emane.Air
	done chan error
}

// Hear has the processes here hear what another host's have sent over the air.
func (d *Driver) Hear(datagram []byte) error {
	air := d.air.Load()
	if air == nil {
		return errNoAir
	}
	return air.Send(datagram)
}

// relay what goes over the air, while members are on other hosts, too.
func (p *pod) relay(in *Input) error {
	if !in.Spread {
		p.endRelay()
		return nil
	}
	if p.relayed != nil {
		select {
		case err := <-p.relayed.done:
			p.relayed.done <- err // for its end
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

// ship what processes send, until the channel is closed.
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
