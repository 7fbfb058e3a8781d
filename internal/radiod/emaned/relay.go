package emaned

import (
	"context"
	"errors"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/emane/ota"
	"vignette.dev/vignette/internal/radiod/netns"
)

// relay begins to relay over-the-air datagrams if members are on other hosts or other networks are in the spectrum, and ends
// that otherwise. Few cluster networks carry multicast, so they take the same path as the native engine's frames.
func (p *pod) relay(in *Input) error {
	if !in.Relayed {
		return p.endRelay()
	}
	if p.relayed {
		return nil
	}
	air, err := netns.Get(p.namespace, func() (*ota.Channel, error) {
		return ota.Open(context.Background(), emane.InPod(in.Network, 0).OTAGroup, emane.PodDevice)
	})
	if err != nil {
		return err
	}
	sockets, err := air.Sockets()
	if err = errors.Join(err, air.Close()); err != nil {
		return err
	}
	p.relayed = true
	return p.Channel(&sockets)
}

func (p *pod) endRelay() error {
	if !p.relayed {
		return nil
	}
	p.relayed = false
	return p.Channel(nil)
}
