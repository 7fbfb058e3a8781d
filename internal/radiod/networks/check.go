package networks

import (
	"errors"
	"fmt"
	"net/netip"

	"vignette.dev/vignette/internal/capturefilter"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/waveforms"
	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Check returns what every worker would refuse of a network's spec: model, changes, members, routing and
// captures.
func Check(spec *v1alpha1.RadioNetworkSpec) error {
	err := checkMembers(spec)
	for _, c := range spec.Captures {
		if filterErr := capturefilter.Check(c.Filter); filterErr != nil {
			err = errors.Join(err, fmt.Errorf("capture %s: filter %q: %w", c.Name, c.Filter, filterErr))
		}
	}
	if spec.Engine == v1alpha1.EngineEMANE {
		if wrong := emane.Check(spec); len(wrong) > 0 {
			return errors.Join(wrong.ToAggregate(), err)
		}
		return err
	}
	_, modelErr := waveforms.Network("", spec, 0, false) // from before all changes
	return errors.Join(err, modelErr)
}

// checkMembers returns what cannot be set up for any pod of a member.
func checkMembers(spec *v1alpha1.RadioNetworkSpec) error {
	for i := range spec.Members {
		m := &spec.Members[i]
		if _, err := podnet.ParseInterface(m.Interface, m.MAC, m.Address, int(spec.MTU), m.Primary); err != nil {
			return fmt.Errorf("node %s: %w", m.Node, err)
		}
	}
	if spec.Routing == nil || len(spec.Members) == 0 {
		return nil
	}
	first := &spec.Members[0]
	address, err := netip.ParsePrefix(first.Address)
	if err != nil {
		return fmt.Errorf("node %s: address %q: want an address with prefix length, such as 198.18.9.1/24", first.Node, first.Address)
	}
	c := routing.ConfigOf(spec.Routing, spec.Seed)
	c.Add(routing.Interface{Name: first.Interface, Address: address, MTU: int(spec.MTU), RateBitsPerSecond: spec.Waveform.RateBitsPerSecond()}, spec.Routing)
	if err := c.Check(); err != nil {
		return fmt.Errorf("routing %s: %w", spec.Routing.Protocol, err)
	}
	return nil
}
