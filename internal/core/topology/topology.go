// Package topology expands the nodes of an experiment: every tactical node with its NEM id, MAC, addresses and apps, in the
// order of the spec. It is pure, so equal specs have equal topologies.
package topology

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Attachment is a node's interface on a radio network.
type Attachment struct {
	// Network is also the interface's name.
	Network string
	// MAC is 02:02:00:00:HH:LL with the NEM id in its last two bytes. Further radios of a virtual machine have another fourth
	// byte.
	MAC string
	// Address has the network's prefix length, and the NEM id as host part.
	Address netip.Prefix
}

// Node is one tactical node.
type Node struct {
	Name string
	// Template is the name of its node in the spec.
	Template string
	Group    string
	// NEM is the network emulation module id, 1 to 65534.
	NEM int32
	// Attachments in the order of the node's networks; the first is its primary network.
	Attachments []Attachment
	// Apps by name, in the node's order.
	Apps           []string
	OpenManagement bool
	// Runtime of the node, never empty.
	Runtime v1alpha1.Runtime
	// Resources of the node as a whole, nil for none.
	Resources *corev1.ResourceRequirements
	// VM are the settings of a virtual machine, nil without any and for pods.
	VM *v1alpha1.VirtualMachine
	// Platform is the scenario's platform that carries the node, empty if the spec names none.
	Platform string
	// Position of a fixed node, or nil.
	Position *v1alpha1.Position
}

// Address of the node on a network.
func (n Node) Address(network string) (netip.Addr, bool) {
	for _, a := range n.Attachments {
		if a.Network == network {
			return a.Address.Addr(), true
		}
	}
	return netip.Addr{}, false
}

// AddressFor is the node's address on the first network that it shares with peer, in the peer's order. For the node itself
// it is the first address.
func (n Node) AddressFor(peer Node) (netip.Addr, bool) {
	for _, a := range peer.Attachments {
		if address, ok := n.Address(a.Network); ok {
			return address, true
		}
	}
	return netip.Addr{}, false
}

// IsVM reports whether the node is a virtual machine.
func (n Node) IsVM() bool { return n.Runtime == v1alpha1.RuntimeVM }

// HasAgent reports whether the platform's agent runs on the node. A guest of the user may have none.
func (n Node) HasAgent() bool { return !n.IsVM() || n.VM.HasAgent() }

// Runs reports whether the node runs the app.
func (n Node) Runs(app string) bool { return slices.Contains(n.Apps, app) }

// Topology is the expanded experiment.
type Topology struct {
	Nodes []Node
	// Subnets by network name.
	Subnets map[string]netip.Prefix
	apps    map[string]v1alpha1.App
	byName  map[string]int
	// domains has a number for the routing domain of each network that has one.
	domains map[string]int
}

// App returns an app by its name.
func (t *Topology) App(name string) (v1alpha1.App, bool) {
	a, ok := t.apps[name]
	return a, ok
}

// NoApp is the error about the name of an app that there is not.
func (t *Topology) NoApp(name string) error {
	return fmt.Errorf("there is no app %q%s", name, wording.DidYouMean(name, slices.Sorted(maps.Keys(t.apps))))
}

// Node returns a node by its name.
func (t *Topology) Node(name string) (Node, bool) {
	i, ok := t.byName[name]
	if !ok {
		return Node{}, false
	}
	return t.Nodes[i], true
}

// NodesRunning are the nodes that run an app, in order.
func (t *Topology) NodesRunning(app string) []Node {
	var hosts []Node
	for _, n := range t.Nodes {
		if n.Runs(app) {
			hosts = append(hosts, n)
		}
	}
	return hosts
}

// Instances are the names of an app's instances on a node: node/app, or node/app/1 … node/app/count.
func Instances(node, app string, count int32) []string {
	if count <= 1 {
		return []string{node + "/" + app}
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s/%s/%d", node, app, i+1)
	}
	return names
}

// MAC of a NEM id: 02:02:00:00:HH:LL, as EMANE's virtual transport sets it.
func MAC(nem int32) string {
	return fmt.Sprintf("02:02:00:00:%02x:%02x", byte(nem>>8), byte(nem))
}

// guestMAC is the MAC of a virtual machine's i-th radio. A guest identifies its interfaces by them, so further ones have their
// number in the fourth octet.
func guestMAC(nem int32, i int) string {
	return fmt.Sprintf("02:02:00:%02x:%02x:%02x", i, byte(nem>>8), byte(nem))
}

// Expand expands the topology of an experiment and returns all its errors.
func Expand(spec *v1alpha1.ExperimentSpec) (*Topology, field.ErrorList) {
	t := &Topology{Subnets: map[string]netip.Prefix{}, apps: map[string]v1alpha1.App{}, byName: map[string]int{}}
	path := field.NewPath("spec")
	total := int64(0)
	for _, node := range spec.Nodes {
		total += int64(countOf(node))
	}
	if total > v1alpha1.MaxNodes { // one experiment must not use the operator's memory
		return t, field.ErrorList{field.TooMany(path.Child("nodes"), int(total), v1alpha1.MaxNodes)}
	}
	errs := t.addNetworks(spec, path.Child("networks"))
	for i, app := range spec.Apps {
		if _, found := t.apps[app.Name]; found {
			errs = append(errs, field.Duplicate(path.Child("apps").Index(i).Child("name"), app.Name))
		}
		t.apps[app.Name] = app
	}
	nems := map[int32]string{}
	for i, node := range spec.Nodes {
		errs = append(errs, t.addNode(node, path.Child("nodes").Index(i), nems)...)
	}
	errs = append(errs, t.checkGroups(spec, path.Child("nodes"))...)
	t.joinDomains(spec)
	return t, errs
}

// checkGroups refuses a group with the name of a node that count makes: links and captures could mean either. The API server knows the
// names of the other nodes.
func (t *Topology) checkGroups(spec *v1alpha1.ExperimentSpec, path *field.Path) (errs field.ErrorList) {
	for i, node := range spec.Nodes {
		if other, found := t.Node(node.Group); found && other.Name != other.Template {
			errs = append(errs, field.Invalid(path.Index(i).Child("group"), node.Group,
				fmt.Sprintf("is also the name of a node that count makes of %s: want another name", other.Template)))
		}
	}
	return errs
}

// joinDomains numbers the routing domains: networks of one protocol that nodes join, one after the other.
func (t *Topology) joinDomains(spec *v1alpha1.ExperimentSpec) {
	protocols := map[string]v1alpha1.RoutingProtocol{}
	t.domains = map[string]int{}
	for i, network := range spec.Networks {
		if network.Routing.SetsRoutes() {
			protocols[network.Name], t.domains[network.Name] = network.Routing.Protocol, i+1
		}
	}
	for _, node := range t.Nodes {
		for _, a := range node.Attachments {
			for _, b := range node.Attachments {
				if protocols[a.Network] != "" && protocols[a.Network] == protocols[b.Network] {
					t.join(t.domains[a.Network], t.domains[b.Network])
				}
			}
		}
	}
}

func (t *Topology) join(one, other int) {
	for network, domain := range t.domains {
		if domain == other {
			t.domains[network] = one
		}
	}
}

// RoutingDomain returns the networks of a network's routing domain, by index in the spec. A network without routing has none.
func (t *Topology) RoutingDomain(spec *v1alpha1.ExperimentSpec, network string) (domain []int) {
	number := t.domains[network]
	for i, other := range spec.Networks {
		if number != 0 && t.domains[other.Name] == number {
			domain = append(domain, i)
		}
	}
	return domain
}

// Reaches reports whether a node may reach another one: over a network of both, or through a routing domain.
func (t *Topology) Reaches(from, to Node) bool {
	if _, shared := to.AddressFor(from); shared || from.Name == to.Name {
		return true
	}
	return slices.ContainsFunc(to.Attachments, func(a Attachment) bool { return t.InRoutingDomain(from, a.Network) })
}

// ReachedAt is the address at which a peer reaches a node: on a network that they share, else the first one in a routing
// domain of both, else the node's first one. It is false for a node without a network.
func (t *Topology) ReachedAt(node, peer Node) (netip.Addr, bool) {
	if address, shared := node.AddressFor(peer); shared {
		return address, true
	}
	if len(node.Attachments) == 0 {
		return netip.Addr{}, false
	}
	for _, a := range node.Attachments {
		if t.InRoutingDomain(peer, a.Network) {
			return a.Address.Addr(), true
		}
	}
	return node.Attachments[0].Address.Addr(), true
}

// InRoutingDomain reports whether a node is on a network of the routing domain of a network.
func (t *Topology) InRoutingDomain(node Node, network string) bool {
	domain := t.domains[network]
	return domain != 0 && slices.ContainsFunc(node.Attachments, func(a Attachment) bool { return t.domains[a.Network] == domain })
}

func (t *Topology) addNetworks(spec *v1alpha1.ExperimentSpec, path *field.Path) (errs field.ErrorList) {
	for i, network := range spec.Networks {
		at := path.Index(i)
		subnet, err := netip.ParsePrefix(network.Subnet)
		if err != nil || !subnet.Addr().Is4() || subnet != subnet.Masked() {
			errs = append(errs, field.Invalid(at.Child("subnet"), network.Subnet, "want an IPv4 subnet by its base address, such as 198.18.0.0/24"))
			continue
		}
		for _, other := range spec.Networks[:i] {
			if t.Subnets[other.Name].IsValid() && t.Subnets[other.Name].Overlaps(subnet) {
				errs = append(errs, field.Invalid(at.Child("subnet"), network.Subnet,
					fmt.Sprintf("overlaps %s of network %s: give every network a subnet of its own", other.Subnet, other.Name)))
			}
		}
		t.Subnets[network.Name] = subnet
	}
	return errs
}

func (t *Topology) addNode(spec v1alpha1.Node, path *field.Path, nems map[int32]string) (errs field.ErrorList) {
	errs = append(errs, t.checkNode(spec, path)...)
	for i := int32(0); i < countOf(spec); i++ {
		node := expandOne(spec, i, int32(len(t.Nodes))+1)
		if _, found := t.byName[node.Name]; found {
			errs = append(errs, field.Duplicate(path.Child("name"), node.Name))
			continue
		}
		if other, found := nems[node.NEM]; found {
			errs = append(errs, field.Invalid(path.Child("nem"), node.NEM,
				fmt.Sprintf("node %s has the NEM id of node %s: without nem a node's id is its place in the order of nodes", node.Name, other)))
		}
		nems[node.NEM] = node.Name
		for j, network := range spec.Networks {
			attachment, err := t.attach(node, network)
			if err != nil {
				errs = append(errs, field.Invalid(path.Child("networks").Index(j), network, err.Error()))
				continue
			}
			if node.IsVM() {
				attachment.MAC = guestMAC(node.NEM, j)
			}
			node.Attachments = append(node.Attachments, attachment)
		}
		t.byName[node.Name] = len(t.Nodes)
		t.Nodes = append(t.Nodes, node)
	}
	return errs
}

func (t *Topology) checkNode(spec v1alpha1.Node, path *field.Path) (errs field.ErrorList) {
	brokers := 0
	for j, name := range spec.Apps {
		app, found := t.apps[name]
		if !found {
			errs = append(errs, field.NotFound(path.Child("apps").Index(j), name))
			continue
		}
		if app.Mosquitto == nil {
			continue
		}
		if brokers++; brokers > 1 {
			errs = append(errs, field.Invalid(path.Child("apps").Index(j), name, "is the node's second broker, but only one can have port 1883"))
		}
		if app.Instances > 1 {
			errs = append(errs, field.Invalid(path.Child("apps").Index(j), name,
				fmt.Sprintf("is a broker with %d instances: a broker runs once on a node", app.Instances)))
		}
	}
	return errs
}

func countOf(spec v1alpha1.Node) int32 {
	if spec.Count == nil {
		return 1
	}
	return *spec.Count
}

func expandOne(spec v1alpha1.Node, i, position int32) Node {
	node := Node{
		Name: spec.Name, Template: spec.Name, Group: cmp.Or(spec.Group, spec.Name), NEM: position, Apps: spec.Apps,
		OpenManagement: spec.OpensManagement(), Platform: platformOf(spec, i), Position: spec.Position,
		Runtime: v1alpha1.RuntimePod, Resources: spec.Resources,
	}
	if spec.Runtime == v1alpha1.RuntimeVM {
		node.Runtime, node.VM = spec.Runtime, spec.VM
	}
	if spec.Count != nil {
		node.Name = spec.Name + "-" + strconv.Itoa(int(i)+1)
	}
	if spec.NEM != nil {
		node.NEM = *spec.NEM + i
	}
	return node
}

// platformOf is the platform of the i-th node of an entry.
func platformOf(spec v1alpha1.Node, i int32) string {
	first, _, isRange := strings.Cut(spec.Platforms, "-")
	if number, err := strconv.Atoi(first); isRange && err == nil {
		return strconv.Itoa(number + int(i))
	}
	return spec.Platform
}

func (t *Topology) attach(node Node, network string) (Attachment, error) {
	subnet, found := t.Subnets[network]
	if !found {
		return Attachment{}, fmt.Errorf("no such network with a valid subnet")
	}
	// The last address of the subnet is its broadcast address.
	if hosts := int64(1)<<(32-subnet.Bits()) - 2; int64(node.NEM) > hosts {
		return Attachment{}, fmt.Errorf("subnet %s has room for NEM ids up to %d, and node %s has %d", subnet, hosts, node.Name, node.NEM)
	}
	base := subnet.Addr().As4()
	address := binary.BigEndian.Uint32(base[:]) + uint32(node.NEM)
	binary.BigEndian.PutUint32(base[:], address)
	return Attachment{Network: network, MAC: MAC(node.NEM), Address: netip.PrefixFrom(netip.AddrFrom4(base), subnet.Bits())}, nil
}

// Broadcast is the last address of a network's subnet.
func (t *Topology) Broadcast(network string) netip.Addr {
	subnet := t.Subnets[network]
	if !subnet.IsValid() {
		return netip.Addr{}
	}
	base := subnet.Addr().As4()
	binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])|(1<<(32-subnet.Bits())-1))
	return netip.AddrFrom4(base)
}
