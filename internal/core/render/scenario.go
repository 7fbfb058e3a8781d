package render

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Scenario is an experiment's compiled scenario. A nil one has no platforms.
type Scenario struct {
	Name, Digest string
	// Synthetic means generated movement, whose parts are all alike.
	Synthetic bool
	// Frequency of the pathloss that its propagation has; empty for a recorded pathloss, and none.
	Frequency  v1alpha1.Frequency
	Statistics v1alpha1.ScenarioStatistics
	// Farthest are the greatest distances in an experiment's RoamingNetworks, by network, as far as they are known.
	Farthest map[string]Separation
}

// PlatformOf is a node's platform: the one in the spec, else the one with the node's NEM id, if the scenario has it. A fixed
// node has none.
func (s *Scenario) PlatformOf(node topology.Node) *int32 {
	if s == nil || node.Position != nil {
		return nil
	}
	number := int(node.NEM)
	if node.Platform != "" {
		var err error
		if number, err = strconv.Atoi(node.Platform); err != nil {
			return nil
		}
	}
	if !s.Statistics.HasPlatform(number) {
		return nil
	}
	return ptr.To(int32(number))
}

// hasAntennaProfile reports whether a node's platform has an antenna profile at some time.
func (s *Scenario) hasAntennaProfile(node topology.Node) bool {
	number := s.PlatformOf(node)
	return number != nil && s.Statistics.HasAntennaProfile(int(*number))
}

// fades reports whether the scenario says which fading EMANE applies in a network.
func (s *Scenario) fades(network v1alpha1.Network, w v1alpha1.WaveformSpec) bool {
	return s != nil && s.Statistics.FadingSelections && network.Engine == v1alpha1.EngineEMANE && w.PHY() != nil
}

// hasPosition reports whether a node has a position: that of its platform, or a fixed one.
func hasPosition(s *Scenario, node topology.Node) bool {
	return node.Position != nil || s.PlatformOf(node) != nil && s.Statistics.Positions
}

// agentPosition is the position of an app's node, nil for none. The agent of the node's first app logs it.
func agentPosition(in Input, node topology.Node, app v1alpha1.App) *agentconfig.Position {
	if !hasPosition(in.Scenario, node) {
		return nil
	}
	p := &agentconfig.Position{File: app.Own(), Log: len(node.Apps) == 0 || node.Apps[0] == app.Name}
	if at := node.Position; at != nil {
		p.LatitudeDegrees, p.LongitudeDegrees, p.AltitudeMetres = at.Latitude.Float(), at.Longitude.Float(), at.Altitude.Float()
	} else {
		p.Platform = int(*in.Scenario.PlatformOf(node))
	}
	return p
}

// missingPlatform explains why the scenario has no platform for a node.
func (s *Scenario) missingPlatform(node topology.Node) string {
	has := fmt.Sprintf("scenario %s has the platforms %s", s.Name, s.Statistics.PlatformNumbers)
	if node.Platform != "" {
		return fmt.Sprintf("%s, and not %s, which is to carry node %s", has, node.Platform, node.Name)
	}
	return fmt.Sprintf("%s, and not %d, the NEM id of node %s: say which platform carries it", has, node.NEM, node.Name)
}

// scenarioOf is the digest of a network's scenario, if its model uses it.
func scenarioOf(in Input, network v1alpha1.Network, waveform v1alpha1.WaveformSpec) string {
	if in.Scenario == nil || !usesPositions(network, waveform) {
		return ""
	}
	return in.Scenario.Digest
}

// usesPositions reports whether a network depends on the positions of its nodes.
func usesPositions(network v1alpha1.Network, waveform v1alpha1.WaveformSpec) bool {
	return waveform.PHY() != nil || network.CommEffects
}

func plannedScenario(in Input) *runapi.PlannedScenario {
	if in.Scenario == nil {
		return nil
	}
	return &runapi.PlannedScenario{Name: in.Scenario.Name, Digest: in.Scenario.Digest, Statistics: in.Scenario.Statistics}
}

// howToSetPathloss tells users of a Waveform how they get a model of their own.
func howToSetPathloss(network v1alpha1.Network) string {
	if network.Waveform == "" {
		return ""
	}
	return fmt.Sprintf(", with the model in place of the waveform (kubectl get waveform %s -o yaml shows it)", network.Waveform)
}

// checkPositions finds nodes without a position in a network with a physical layer. Without pathloss or a position a radio
// would silently receive nothing.
func (c *radioChecker) checkPositions(network v1alpha1.Network, fromScenario bool) (errs field.ErrorList) {
	ref := field.NewPath("spec", "scenario")
	switch {
	case c.scenario == nil && c.spec.Scenario != nil:
		return nil // its content is not known yet
	case c.scenario == nil && fromScenario:
		return field.ErrorList{field.Required(ref, fmt.Sprintf("network %s takes its pathloss from a scenario: name one, or give the nodes positions "+
			"and set phy.pathloss to FreeSpace or TwoRay%s", network.Name, howToSetPathloss(network)))}
	case c.scenario != nil && fromScenario && !c.scenario.Statistics.Pathloss && c.scenario.Statistics.Platforms == 1:
		return field.ErrorList{field.Invalid(ref.Child("ref"), c.scenario.Name, fmt.Sprintf("has one platform, and network %s needs a pathloss between two: "+
			"give the Scenario the tracks of the others, or set phy.pathloss to FreeSpace or TwoRay", network.Name))}
	case c.scenario != nil && fromScenario && !c.scenario.Statistics.Pathloss:
		return field.ErrorList{field.Invalid(ref.Child("ref"), c.scenario.Name, fmt.Sprintf("has no pathloss, which network %s needs: give the Scenario propagation, "+
			"or set phy.pathloss to FreeSpace or TwoRay", network.Name))}
	}
	for i, entry := range c.spec.Nodes {
		if message := c.whyMisplaced(network, entry.Name, fromScenario); message != "" {
			errs = append(errs, c.once(field.Invalid(field.NewPath("spec", "nodes").Index(i).Child(positionField(entry)), entry.Name, message))...)
		}
	}
	return errs
}

// positionField is the field of a node with its position.
func positionField(node v1alpha1.Node) string {
	switch {
	case node.Position != nil:
		return "position"
	case node.Count != nil:
		return "platforms"
	}
	return "platform"
}

// whyMisplaced explains why a node of an entry cannot be on a network, for the first such node.
func (c *radioChecker) whyMisplaced(network v1alpha1.Network, entry string, fromScenario bool) string {
	for _, node := range attached(c.topology, network.Name, everyNode) {
		if node.Template != entry {
			continue
		}
		carried := c.scenario.PlatformOf(node) != nil
		switch {
		case node.Position != nil && fromScenario:
			return fmt.Sprintf("node %s is fixed, and network %s takes its pathloss from the scenario, which does not have it: "+
				"give it a platform, or set phy.pathloss to FreeSpace or TwoRay", node.Name, network.Name)
		case node.Position != nil: // checkFixed checks it
		case !carried && c.scenario != nil:
			return c.scenario.missingPlatform(node)
		case !carried:
			return fmt.Sprintf("network %s computes pathloss from positions, and node %s has none: give it a position, or a platform of a scenario", network.Name, node.Name)
		case !fromScenario && !c.scenario.Statistics.Positions:
			return fmt.Sprintf("network %s computes pathloss from positions, and scenario %s has none for node %s", network.Name, c.scenario.Name, node.Name)
		}
	}
	return ""
}

// checkFixed finds nodes with a position that is not on Earth. Apps report it, whatever the model of their networks.
func checkFixed(spec *v1alpha1.ExperimentSpec) (errs field.ErrorList) {
	for i, node := range spec.Nodes {
		if node.Position == nil {
			continue
		}
		if err := checkPosition(*node.Position); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("spec", "nodes").Index(i).Child("position"), node.Name, err.Error()))
		}
	}
	return errs
}

func checkPosition(p v1alpha1.Position) error {
	return positionOf(p).Validate()
}

func positionOf(p v1alpha1.Position) geo.Position {
	return geo.Position{Latitude: p.Latitude.Float(), Longitude: p.Longitude.Float(), Altitude: p.Altitude.Float()}
}
