package routing

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Topology beside the first: packets with its DSCPs take its routes (RFC 7722).
type Topology struct {
	olsr.Topology
	Name string
	DSCP []uint8
}

const (
	// firstTable is the number of the first topology's routing table, and the priority of its rule: after that of the
	// kernel's own addresses, before that of the main table. Further topologies have the numbers after it.
	firstTable = 100 * RouteProtocol
	// firstMark is the first topology's firewall mark.
	firstMark = RouteProtocol << 8
	// markTable is the nftables table, of family ip, that marks packets by DSCP.
	markTable = "vignette_topologies"
)

// addTopologies adds the topologies of a network's routing that the domain does not have yet. It returns the metric types of
// all topologies of the network. They are ordered by type, so that the order of networks does not matter.
func (c *Config) addTopologies(r *v1alpha1.Routing) (types []uint8) {
	for _, t := range r.Topologies {
		added := Topology{Name: t.Name, Topology: olsr.Topology{Type: t.Type(), Metric: metricOf(t.Metric)}}
		for _, code := range t.DSCP {
			added.DSCP = append(added.DSCP, uint8(code)) //nolint:gosec // 0 to 63
		}
		types = append(types, added.Type)
		if !slices.ContainsFunc(c.Topologies, func(known Topology) bool { return known.Type == added.Type }) {
			c.Topologies = append(c.Topologies, added)
		}
	}
	slices.SortFunc(c.Topologies, func(a, b Topology) int { return cmp.Compare(a.Type, b.Type) })
	slices.Sort(types)
	return types
}

func metricOf(m v1alpha1.LinkMetric) olsr.Metric {
	if m == v1alpha1.MetricDAT {
		return olsr.DAT
	}
	return olsr.HopCount
}

// tableOf returns the routing table of a topology's number in olsr.Route.
func tableOf(topology int) int {
	if topology == 0 {
		return unix.RT_TABLE_MAIN
	}
	return firstTable + topology - 1
}

// topologyOf returns the number of the topology with that routing table, or false.
func topologyOf(table int) (topology int, ok bool) {
	if table == unix.RT_TABLE_MAIN {
		return 0, true
	}
	topology = table - firstTable + 1
	return topology, topology > 0 && topology < olsr.MaxTopologies
}

// chooseTopologies has packets with a topology's DSCPs look up that topology's table first, and then the main one. The mark
// is nftables', because the kernel's rules know all DSCPs only from version 6.14 on.
func chooseTopologies(namespace *os.File, handle *netlink.Handle, topologies []Topology) error {
	if err := setRules(handle, len(topologies)); err != nil {
		return err
	}
	return setMarks(namespace, topologies)
}

// again opens a namespace once more, for as long as this has its topologies.
func again(namespace *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(namespace.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), namespace.Name()), nil //nolint:gosec // not negative
}

// setRules replaces the rules of topologies.
func setRules(handle *netlink.Handle, count int) error {
	rules, err := handle.RuleList(netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("kernel's routing rules: %w", err)
	}
	there := map[int]bool{}
	for i := range rules {
		n, ok := topologyOf(rules[i].Table)
		switch {
		case !ok || n == 0 || rules[i].Priority != rules[i].Table:
		case n <= count && !there[n]:
			there[n] = true
		default:
			if err := handle.RuleDel(&rules[i]); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("remove the routing rule of table %d: %w", rules[i].Table, err)
			}
		}
	}
	for n := 1; n <= count; n++ {
		if there[n] {
			continue
		}
		rule := netlink.NewRule()
		rule.Family, rule.Table, rule.Priority, rule.Mark, rule.Protocol = netlink.FAMILY_V4, tableOf(n), tableOf(n), markOf(n), RouteProtocol
		if err := handle.RuleAdd(rule); err != nil {
			return fmt.Errorf("add the routing rule of table %d: %w", rule.Table, err)
		}
	}
	return nil
}

func markOf(topology int) uint32 { return uint32(firstMark + topology) } //nolint:gosec // at most MaxTopologies

// setMarks replaces what marks packets by DSCP, before routes are looked up: of others' packets once they arrive, of the node's
// own once they leave, for which the kernel looks again.
func setMarks(namespace *os.File, topologies []Topology) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(namespace.Fd())))
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	table := &nftables.Table{Name: markTable, Family: nftables.TableFamilyIPv4}
	c.AddTable(table) // so that there is one to delete
	c.DelTable(table)
	if len(topologies) > 0 {
		c.AddTable(table)
		arriving := &nftables.Chain{Name: "arriving", Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle}
		leaving := &nftables.Chain{Name: "leaving", Table: table, Type: nftables.ChainTypeRoute,
			Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityMangle}
		for _, chain := range []*nftables.Chain{arriving, leaving} {
			c.AddChain(chain)
			for n, t := range topologies {
				for _, code := range t.DSCP {
					c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: marking(code, markOf(1+n))})
				}
			}
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("nftables rules of topologies: %w", err)
	}
	return nil
}

// marking sets a mark on packets with a DSCP: the high six bits of the second octet of the IP header (RFC 2474).
func marking(code uint8, mark uint32) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 1, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{0xfc}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{code << 2}},
		&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(mark)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}
}
