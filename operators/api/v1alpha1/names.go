package v1alpha1

// EveryNode means all nodes of a network, in place of a node's or group's name.
const EveryNode = "*"

// IsCalled tells that a name in a network's links, radios, routes, captures or changes means a node: it is the node's own, its
// group's, or EveryNode.
func IsCalled(name, node, group string) bool {
	return name == EveryNode || name == node || name == group
}

// IsCalled tells that a name means the member.
func (m *Member) IsCalled(name string) bool { return IsCalled(name, m.Node, m.Group) }
