// Package podnet sets up a pod's network namespace for its radios: interface, addresses, routes and kernel
// settings. Its nftables rules allow no path around the radio.
package podnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
)

// Interface describes a radio interface.
type Interface struct {
	Name string
	MAC  net.HardwareAddr
	// Address with prefix length.
	Address *net.IPNet
	MTU     int
	// Primary takes the pod's multicast and limited broadcast.
	Primary bool
	// Owner is written to the interface, so that a leftover interface can be matched with its attachment.
	Owner string
	// ForwardOnly interfaces have no address: a virtual machine's kernel has the address, the routes and the
	// settings.
	ForwardOnly bool
}

// Alias of the interface, with its owner.
func (i *Interface) Alias() string { return ownerPrefix + i.Owner }

// ownerPrefix of the interface's alias, before its owner.
const ownerPrefix = "vignette "

// ParseInterface reads the parts that are text in the API.
func ParseInterface(name, mac, address string, mtu int, primary bool) (Interface, error) {
	i := Interface{Name: name, MTU: mtu, Primary: primary}
	hardware, err := net.ParseMAC(mac)
	if err != nil || len(hardware) != 6 {
		return i, fmt.Errorf("mac %q of %s: want six octets in hexadecimal", mac, name)
	}
	ip, network, err := net.ParseCIDR(address)
	if err != nil {
		return i, fmt.Errorf("address %q of %s: want an address with prefix length, such as 198.18.9.1/24", address, name)
	}
	i.MAC, i.Address = hardware, &net.IPNet{IP: ip, Mask: network.Mask}
	return i, nil
}

// QueueLength of frames in the TAP's ring. A sender's bursts must be lost in the model's queue, which counts
// them by the second, and not before it.
const QueueLength = 4096

// Move moves the link from the calling thread's namespace to another one, with the given index; 0 lets the
// kernel choose. Kernels before 5.12 ignore the index.
func Move(name string, i Interface, namespace *os.File, index int) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	if err := netlink.LinkSetHardwareAddr(link, i.MAC); err != nil {
		return fmt.Errorf("interface %s: mac %v: %w", name, i.MAC, err)
	}
	if err := netlink.LinkSetMTU(link, i.MTU); err != nil {
		return fmt.Errorf("interface %s: mtu %d: %w", name, i.MTU, err)
	}
	if err := netlink.LinkSetTxQLen(link, QueueLength); err != nil {
		return fmt.Errorf("interface %s: txqueuelen %d: %w", name, QueueLength, err)
	}
	if err := moveLink(link.Attrs().Index, int(namespace.Fd()), index); err != nil {
		return fmt.Errorf("interface %s: move to the pod as number %d: %w", name, index, err)
	}
	return nil
}

// moveLink is netlink.LinkSetNsFd with an index.
func moveLink(from, namespace, index int) error {
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(from)
	request.AddData(message)
	request.AddData(nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(namespace))))
	if index > 0 {
		request.AddData(nl.NewRtAttr(unix.IFLA_NEW_IFINDEX, nl.Uint32Attr(uint32(index))))
	}
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// SetUp names the link, applies kernel settings, adds address and routes, and sets it up. It runs on a thread
// in the pod's namespace. It returns the interface's index and the settings.
func SetUp(temporary string, i Interface) (index int, settings map[string]string, err error) {
	link, err := netlink.LinkByName(temporary)
	if err != nil {
		return 0, nil, fmt.Errorf("interface %s: %w", temporary, err)
	}
	index = link.Attrs().Index
	if err := netlink.LinkSetName(link, i.Name); err != nil {
		return index, nil, fmt.Errorf("interface %s: rename to %s: %w", temporary, i.Name, err)
	}
	if i.Owner != "" {
		if err := netlink.LinkSetAlias(link, i.Alias()); err != nil {
			return index, nil, fmt.Errorf("interface %s: alias: %w", i.Name, err)
		}
	}
	if i.ForwardOnly {
		return index, map[string]string{}, setUpForwardOnly(link, i.Name)
	}
	if settings, err = applySettings(procSysNet, i.Name); err != nil {
		return index, settings, err
	}
	settings[i.Name+".mtu"] = strconv.Itoa(i.MTU)
	settings[i.Name+".txqueuelen"] = strconv.Itoa(QueueLength)
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: i.Address}); err != nil {
		return index, settings, fmt.Errorf("interface %s: address %v: %w", i.Name, i.Address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return index, settings, fmt.Errorf("interface %s: set up: %w", i.Name, err)
	}
	if i.Primary {
		err = addGroupRoutes(index, i.Name)
	}
	return index, settings, err
}

func setUpForwardOnly(link netlink.Link, name string) error {
	if err := errors.Join(SilenceKernel(link, name), netlink.LinkSetUp(link)); err != nil {
		return fmt.Errorf("interface %s: set up: %w", name, err)
	}
	return nil
}

// SilenceKernel stops the kernel's own traffic on an interface of the calling thread's namespace.
func SilenceKernel(link netlink.Link, name string) error {
	err := set(filepath.Join(procSysNet, "ipv6/conf", name, "disable_ipv6"), "1")
	if errors.Is(err, os.ErrNotExist) {
		err = nil // a kernel without IPv6
	}
	if err := errors.Join(err, netlink.LinkSetARPOff(link)); err != nil {
		return fmt.Errorf("interface %s: silence the kernel: %w", name, err)
	}
	return nil
}

// addGroupRoutes routes multicast and limited broadcast to the radio. The pod's default route would send them
// to eth0.
func addGroupRoutes(index int, name string) error {
	for _, destination := range []string{"224.0.0.0/4", "255.255.255.255/32"} {
		_, network, err := net.ParseCIDR(destination)
		if err != nil {
			return err
		}
		route := &netlink.Route{LinkIndex: index, Dst: network, Scope: netlink.SCOPE_LINK}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("route %s through %s: %w", destination, name, err)
		}
	}
	return nil
}

const procSysNet = "/proc/sys/net"

// setting of the kernel, below /proc/sys/net. IF stands for the radio interface.
type setting struct{ path, value string }

// settings, with reasons. Nodes are routers of the tactical network, also with an app's own routing. The
// kernel must not learn routes by itself (redirects) or drop asymmetric ones (rp_filter). An address is only
// known on its own radio (ARP). IPv6 and reports of link-local groups would use links of a few kbit/s for
// nothing. Apps without privileges may listen on all ports, and ping.
var settings = []setting{
	{"ipv4/ip_forward", "1"},
	{"ipv4/conf/all/accept_redirects", "0"},
	{"ipv4/conf/default/accept_redirects", "0"},
	{"ipv4/conf/IF/accept_redirects", "0"},
	{"ipv4/conf/all/send_redirects", "0"},
	{"ipv4/conf/default/send_redirects", "0"},
	{"ipv4/conf/IF/send_redirects", "0"},
	{"ipv4/conf/all/rp_filter", "0"},
	{"ipv4/conf/IF/rp_filter", "0"},
	{"ipv4/conf/IF/arp_ignore", "1"},
	{"ipv4/conf/IF/arp_announce", "2"},
	{"ipv4/igmp_link_local_mcast_reports", "0"},
	{"ipv4/ip_unprivileged_port_start", "0"},
	{"ipv4/ping_group_range", "0 65535"},
	{"ipv6/conf/IF/disable_ipv6", "1"},
}

// recorded settings are not changed, but written to the run record, because they affect TCP.
var recorded = []string{congestionControl, "ipv4/tcp_rmem", "ipv4/tcp_wmem"}

const congestionControl = "ipv4/tcp_congestion_control"

// CongestionControl is the sysctl(8) name of TCP's congestion control in settings.
var CongestionControl = sysctlName(congestionControl)

// SetCongestionControl sets TCP's congestion control in the calling thread's namespace; an empty name leaves
// it. The kernel loads the module. In a pod it refuses what the host has not allowed; see
// AllowCongestionControl.
func SetCongestionControl(name string) error { return setCongestionControl(procSysNet, name) }

func setCongestionControl(root, name string) error {
	if name == "" {
		return nil
	}
	if err := set(filepath.Join(root, congestionControl), name); err != nil {
		return fmt.Errorf("TCP congestion control %s: %w", name, err)
	}
	return nil
}

// CheckCongestionControl refuses one that nodes may not choose: it is neither allowed on this host already, nor in others.
func CheckCongestionControl(name string, others []string) error {
	return checkCongestionControl(procSysNet, name, others)
}

func checkCongestionControl(root, name string, others []string) error {
	text, _ := os.ReadFile(filepath.Join(root, allowedCongestionControls)) // unreadable: the others remain
	allowed := strings.Fields(string(text))
	if slices.Contains(allowed, name) || slices.Contains(others, name) {
		return nil
	}
	return fmt.Errorf("tcpCongestionControl is %q: want one that this host allows (%s), or of the chart's radiod.tcpCongestionControls (%s)",
		name, strings.Join(allowed, ", "), strings.Join(others, ", "))
}

const allowedCongestionControls = "ipv4/tcp_allowed_congestion_control"

// AllowCongestionControl adds one to those that unprivileged programs on this host, and so its pods, may
// choose. It needs the host's network namespace.
func AllowCongestionControl(name string) error { return allowCongestionControl(procSysNet, name) }

func allowCongestionControl(root, name string) error {
	path := filepath.Join(root, allowedCongestionControls)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("allow TCP congestion control %s: %w", name, err)
	}
	allowed := strings.Fields(string(text))
	if slices.Contains(allowed, name) {
		return nil
	}
	if err := set(path, strings.Join(append(allowed, name), " ")); err != nil {
		return fmt.Errorf("allow TCP congestion control %s: %w", name, err)
	}
	return nil
}

// WithoutIPv6 has interfaces that the calling thread's namespace gets later begin without IPv6, which needs no lock of the kernel's.
func WithoutIPv6() error {
	path := filepath.Join(procSysNet, "ipv6/conf/default/disable_ipv6")
	if err := set(path, "1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("no IPv6 on new interfaces: %w", err)
	}
	return nil
}

// applySettings applies the settings and returns all values by their sysctl(8) names. Tests replace root.
func applySettings(root, name string) (map[string]string, error) {
	values := map[string]string{}
	for _, s := range settings {
		relative := strings.ReplaceAll(s.path, "IF", name)
		err := set(filepath.Join(root, relative), s.value)
		if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(relative, "ipv6/") {
			continue // a kernel without IPv6 has nothing to switch off
		}
		if err != nil {
			return values, fmt.Errorf("kernel setting %s = %s: %w", relative, s.value, err)
		}
		values[sysctlName(relative)] = s.value
	}
	for _, relative := range recorded {
		if value, err := os.ReadFile(filepath.Join(root, relative)); err == nil {
			values[sysctlName(relative)] = strings.Join(strings.Fields(string(value)), " ")
		}
	}
	return values, nil
}

// sysctlName returns the name that sysctl(8) uses. A dot in an interface's name becomes a slash.
func sysctlName(relative string) string {
	return "net." + strings.NewReplacer("/", ".", ".", "/").Replace(relative)
}

// Remove deletes the radio in the calling thread's namespace, if there is one.
func Remove(name string) error { return RemoveIf(name, isRadio) }

// RemoveIf deletes the interface in the calling thread's namespace, if it is there and ours.
func RemoveIf(name string, isOurs func(netlink.Link) bool) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil && isOurs(link) {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("remove interface %s: %w", name, err)
	}
	return nil
}

// State is the state of an interface that radiod reads repeatedly.
type State struct {
	Index int
	// Veth reports whether it is an end of a veth pair, whose frames another program carries. Others are
	// TAPs.
	Veth bool
	// Owner of the interface; empty if radiod did not make it.
	Owner string
	// RingDrops are frames of the node that found no room in the TAP's ring.
	RingDrops uint64
	// Traffic that passed through the TAP's descriptor.
	Traffic radio.Traffic
}

// Read returns the state of the interface in the calling thread's namespace. The error is os.ErrNotExist if
// there is none of that name.
func Read(name string) (State, error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		err = os.ErrNotExist
	}
	if err != nil {
		return State{}, fmt.Errorf("interface %s: %w", name, err)
	}
	return stateOf(link), nil
}

func stateOf(link netlink.Link) State {
	attributes := link.Attrs()
	s := State{Index: attributes.Index, Veth: link.Type() == "veth"}
	if owner, ours := strings.CutPrefix(attributes.Alias, ownerPrefix); ours {
		s.Owner = owner
	}
	if n := attributes.Statistics; n != nil {
		s.RingDrops = n.TxDropped
		// radiod reads what the interface transmits.
		s.Traffic = radio.Traffic{FramesRead: n.TxPackets, BytesRead: n.TxBytes, FramesWritten: n.RxPackets, BytesWritten: n.RxBytes}
	}
	return s
}

// Owned returns the radios that radiod made, by name, in the calling thread's namespace.
func Owned() (map[string]State, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("interfaces: %w", err)
	}
	owned := map[string]State{}
	for _, link := range links {
		if state := stateOf(link); isRadio(link) && state.Owner != "" {
			owned[link.Attrs().Name] = state
		}
	}
	return owned, nil
}

// isRadio reports whether a link is a radio: a TAP, or a veth end that radiod has marked, because eth0 may be
// one.
func isRadio(link netlink.Link) bool {
	return link.Type() == "tuntap" || link.Type() == "tun" || link.Type() == "veth" && strings.HasPrefix(link.Attrs().Alias, ownerPrefix)
}

// Gateways of the default routes in the calling thread's namespace.
func Gateways() ([]net.IP, error) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	var gateways []net.IP
	for _, route := range routes {
		if isDefault(route.Dst) && route.Gw != nil {
			gateways = append(gateways, route.Gw)
		}
	}
	return gateways, nil
}

func isDefault(network *net.IPNet) bool {
	if network == nil {
		return true
	}
	ones, _ := network.Mask.Size()
	return ones == 0 && network.IP.IsUnspecified()
}

// set gives a kernel setting a value, which is not written where it is there already: for some settings the kernel needs its lock
// of all interfaces, and keeps a processor until it has it. A missing file means a kernel without that setting.
func set(path, value string) error {
	before, err := os.ReadFile(path)
	if err != nil || strings.Join(strings.Fields(string(before)), " ") == value {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}
