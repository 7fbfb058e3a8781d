package v1alpha1

import (
	"cmp"
	"slices"
)

// EveryNode means all nodes of a network, instead of a node's or group's name.
const EveryNode = "*"

// IsEveryNode reports whether a name in a change means all nodes. None does, too.
func IsEveryNode(name string) bool { return name == "" || name == EveryNode }

// IsCalled reports whether a name in a network's links, radios, routes, captures or changes means a node: it is the node's own,
// its group's, or EveryNode.
func IsCalled(name, node, group string) bool {
	return name == EveryNode || name == node || name == group
}

// IsCalled reports whether a name means the member.
func (m *Member) IsCalled(name string) bool { return IsCalled(name, m.Node, m.Group) }

// AntennaMetres is the antenna height above the ground of a node's radio. The last of the network's radios that names it counts,
// else the height of all.
func (p *PHY) AntennaMetres(radios []Radio, node, group string) float64 {
	height := cmp.Or(p.AntennaHeight, "3m")
	for _, radio := range radios {
		if radio.AntennaHeight != nil && slices.ContainsFunc(radio.Nodes, func(name string) bool { return IsCalled(name, node, group) }) {
			height = *radio.AntennaHeight
		}
	}
	return height.Float()
}
