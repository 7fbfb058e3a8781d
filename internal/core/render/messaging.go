package render

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/messaging"
)

// messagingGroups is the block of multicast groups of messaging services, in the local scope of RFC 2365: 239.253.0.0/16. Each app has
// groupsOfApp of them.
const (
	messagingGroups = 253
	groupsOfApp     = 1024
)

const (
	// minPeriod of a push.
	minPeriod = time.Millisecond
	// longestTime of a request, or between two messages of a push.
	longestTime = 240 * time.Hour
)

// messaging resolves the members, groups and sender of a messaging service.
func (m *siteMaker) messaging(site *apps.Site, node topology.Node, app v1alpha1.App) {
	if app.Messaging == nil {
		return
	}
	site.Members = membersOf(m.in.Topology, node, servingApp(app))
	if via := app.Messaging.Via; via != "" {
		site.Proxy = m.proxyAddress(node, via)
	}
	if app.Messaging.Multicast {
		site.Interface, _ = m.in.Topology.BroadcastNetwork(node, app.Messaging.Network)
		site.Multicast = multicastGroups(&m.in.Experiment.Spec, app.Name, site.Members)
	}
	site.Senders = m.senders("", node.Group, 1)
	if p := app.Messaging.Push; p != nil {
		site.Push = pushes(p, apps.Member{Node: node.Name, Group: node.Group}, site.Members)
	}
}

// membersOf are the nodes that run an app, as seen from one of them.
func membersOf(t *topology.Topology, from topology.Node, app string) (members []apps.Member) {
	for _, host := range t.NodesRunning(app) {
		address, _ := t.ReachedAt(host, from)
		members = append(members, apps.Member{Node: host.Name, Group: host.Group, Address: address.String()})
	}
	return members
}

// servingApp is the app whose nodes get an app's messages: the server of the user's own that it calls, or the app itself.
func servingApp(app v1alpha1.App) string {
	if app.Messaging != nil && app.Messaging.Server != "" {
		return app.Messaging.Server
	}
	return app.Name
}

// multicastGroups are those of an app: one for each group of its nodes, and one for all.
func multicastGroups(spec *v1alpha1.ExperimentSpec, app string, members []apps.Member) (groups []apps.MulticastGroup) {
	names := []string{apps.AddresseeAll}
	for _, m := range members {
		if m.Group != m.Node && !slices.Contains(names, m.Group) { // a node without a group is one by itself
			names = append(names, m.Group)
		}
	}
	first := groupsOfApp * slices.IndexFunc(spec.Apps, func(a v1alpha1.App) bool { return a.Name == app })
	for i, name := range names {
		number := first + i
		group := apps.MulticastGroup{Name: name, Address: netip.AddrFrom4([4]byte{239, messagingGroups, byte(number >> 8), byte(number)}).String()}
		for _, m := range members {
			if m.Group == name || name == apps.AddresseeAll {
				group.Members = append(group.Members, m.Node)
			}
		}
		groups = append(groups, group)
	}
	return groups
}

// CheckMessaging finds messaging services whose settings contradict each other, and messages that nobody can receive. The topology must
// be valid.
func CheckMessaging(spec *v1alpha1.ExperimentSpec, t *topology.Topology) (errs field.ErrorList) {
	for i, app := range spec.Apps {
		if app.Messaging == nil {
			continue
		}
		path := field.NewPath("spec", "apps").Index(i).Child("messaging")
		c := messagingCheck{app: app, m: app.Messaging, hosts: t.NodesRunning(app.Name), t: t}
		errs = append(errs, c.settings(path)...)
		errs = append(errs, c.server(path)...)
		errs = append(errs, c.encodings(path)...)
		errs = append(errs, c.push(path.Child("push"))...)
		errs = append(errs, c.networks(path)...)
		errs = append(errs, c.multicast(path)...)
	}
	return append(errs, checkPorts(spec, t)...)
}

// messagingCheck checks one messaging service.
type messagingCheck struct {
	app   v1alpha1.App
	m     *v1alpha1.Messaging
	hosts []topology.Node
	t     *topology.Topology
}

// settings finds settings that are not for the transport, and several sources of messages.
func (c *messagingCheck) settings(path *field.Path) (errs field.ErrorList) {
	forbid := func(given bool, name, words string) {
		if given {
			errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf("transport is %s: %s", c.m.Transport, words)))
		}
	}
	transport := messagingconfig.TransportOf(c.m.Transport)
	forbid(c.m.HTTP != nil && !transport.HTTP, "http", "http is for http and soap")
	forbid(c.m.CoAP != nil && c.m.Transport != v1alpha1.TransportCoAP, "coap", "coap is for coap, which is CoAP over UDP")
	forbid(c.m.SOAP != nil && !c.m.BySOAP(), "soap", "soap is for soap and soap-udp")
	forbid(c.m.Via != "" && !transport.HTTP, "via", "a proxy carries http and soap")
	forbid(c.m.Multicast && transport.MaxMulticastBytes == 0, "multicast", "multicast is for coap and soap-udp")
	forbid(!c.m.WantsReceipt() && transport.HTTP, "receipt", "HTTP always has a response: leave out receipt, or take coap, coap-tcp or soap-udp")
	if c.m.SOAP != nil && c.m.SOAP.Envelope == v1alpha1.EnvelopeEXI {
		if c.m.Compression == v1alpha1.CompressionGzip {
			errs = append(errs, field.Forbidden(path.Child("compression"), "an envelope in EXI is not compressed again: want none, or soap.envelope XML"))
		}
		if c.m.Encoding != "" && c.m.Encoding != v1alpha1.EncodingXML {
			errs = append(errs, field.Invalid(path.Child("encoding"), c.m.Encoding, "an envelope in EXI encodes its body too: want xml, or soap.envelope XML"))
		}
	}
	if c.m.Network != "" && !c.m.Multicast {
		errs = append(errs, field.Forbidden(path.Child("network"), "network is for multicast: else the addressee's address decides"))
	}
	if c.m.Timeout != "" && (c.m.Timeout.Std() <= 0 || c.m.Timeout.Std() > longestTime) {
		errs = append(errs, field.Invalid(path.Child("timeout"), c.m.Timeout, fmt.Sprintf("must be above zero, and %s at most", wording.Time(longestTime))))
	}
	if o := c.m.CoAP; o != nil && o.ACKTimeout != "" && (o.ACKTimeout.Std() < time.Millisecond || o.ACKTimeout.Std() > time.Hour) {
		errs = append(errs, field.Invalid(path.Child("coap", "ackTimeout"), o.ACKTimeout, "must be from 1ms to 1h"))
	}
	sources := 0
	for _, given := range []bool{len(c.m.Messages) > 0, c.m.ConfigMap != nil, c.m.Push != nil} {
		if given {
			sources++
		}
	}
	if sources > 1 {
		errs = append(errs, field.Invalid(path, c.app.Name, "has several of messages, configMap and push: give one, or none for a service that only answers"))
	}
	return errs
}

// server finds a server that is no app of the user's own, and settings that do not go with one.
func (c *messagingCheck) server(path *field.Path) (errs field.ErrorList) {
	name := c.m.Server
	if name == "" {
		if c.m.Path != "" {
			errs = append(errs, field.Forbidden(path.Child("path"), "path is for requests to a server of your own: name it in server"))
		}
		return errs
	}
	app, known := c.t.App(name)
	switch {
	case !known:
		errs = append(errs, field.Invalid(path.Child("server"), name, c.t.NoApp(name).Error()))
	case !app.Own():
		errs = append(errs, field.Invalid(path.Child("server"), name, "is no app of your own: want one with image and command. Without server, nodes that run this app call each other"))
	case len(c.t.NodesRunning(name)) == 0:
		errs = append(errs, field.Invalid(path.Child("server"), name, "no node runs it"))
	}
	if !c.m.Sends() {
		errs = append(errs, field.Invalid(path, c.app.Name, fmt.Sprintf("calls server %s and sends nothing: give it messages, configMap or push", name)))
	}
	if _, err := url.PathUnescape(c.m.Path); err != nil {
		errs = append(errs, field.Invalid(path.Child("path"), c.m.Path, "must be escaped as in URLs: want %25 for a percent sign"))
	}
	if c.m.Multicast {
		errs = append(errs, field.Forbidden(path.Child("multicast"), "server has no multicast group: want one request to each addressee"))
	}
	if c.m.Reply != "" {
		errs = append(errs, field.Forbidden(path.Child("reply"), fmt.Sprintf("server %s answers: this app has no responses", name)))
	}
	return errs
}

// encodings finds contents that cannot be had in the encoding, or that the transport cannot carry.
func (c *messagingCheck) encodings(path *field.Path) (errs field.ErrorList) {
	settings, ofModel := messaging.Settings(c.app), false
	check := func(kind string, at *field.Path) {
		if !messagingconfig.IsModel(kind) {
			errs = append(errs, c.payload(kind, at)...)
			return
		}
		ofModel = true
		if c.m.BySOAP() && !slices.Contains(encoding.Encodings(kind), encoding.XML) {
			errs = append(errs, field.Invalid(at, kind, fmt.Sprintf("SOAP carries XML, and %s has none: want nffi, or arbitrary bytes", kind)))
			return
		}
		used := settings.EncodingOf(kind)
		switch err := encoding.Check(kind, used, settings.Compression); {
		case err != nil:
			errs = append(errs, field.Invalid(path.Child("encoding"), used, plainWords(err)))
		case c.m.BySOAP() && (used == encoding.JSON || used == encoding.CBOR):
			errs = append(errs, field.Invalid(path.Child("encoding"), used, fmt.Sprintf("SOAP carries XML: want xml, exi or exi-schemaless with transport %s", c.m.Transport)))
		}
	}
	if len(c.m.Messages) > 0 || c.m.ConfigMap != nil {
		check(settings.Model, path.Child("model"))
	}
	if c.m.Push != nil {
		check(messaging.PayloadOf(c.m.Push), path.Child("push", "payload"))
	}
	if c.m.Reply != "" {
		check(c.m.Reply, path.Child("reply"))
	}
	if ofModel || c.m.Push == nil && c.m.Reply == "" {
		return errs
	}
	const words = "is for geojson, nffi and scripted messages: other payloads have one form"
	if c.m.Encoding != "" {
		errs = append(errs, field.Forbidden(path.Child("encoding"), "encoding "+words))
	}
	if settings.Compression == string(v1alpha1.CompressionGzip) {
		errs = append(errs, field.Forbidden(path.Child("compression"), "compression "+words))
	}
	return errs
}

// payload finds contents of no message model that are none, or too large.
func (c *messagingCheck) payload(kind string, at *field.Path) field.ErrorList {
	word, count, _ := strings.Cut(kind, ":")
	if word == "file" {
		return field.ErrorList{field.Invalid(at, kind, "messaging has no payload from files: "+wantedPayload)}
	}
	_, err := payload.New(kind, payload.Sender{Entity: longestSender(c.hosts, c.app.Name)}, 1)
	switch {
	case errors.Is(err, payload.ErrKind):
		return field.ErrorList{field.Invalid(at, kind, wantedPayload)}
	case err != nil:
		return field.ErrorList{field.Invalid(at, kind, plainWords(err))}
	}
	size, err := strconv.Atoi(count)
	if word == encoding.NFFI {
		size *= nffi.MaxBytes // of each track
	}
	if most := messaging.Settings(c.app).MaxPayloadBytes(c.m.Multicast, c.m.Via != ""); err == nil && size > most {
		return field.ErrorList{field.Invalid(at, kind, fmt.Sprintf("has %d bytes: want %d at most with %s", size, most, carrier(c.m)))}
	}
	return nil
}

const wantedPayload = "want geojson, geojson-ids, nffi, nffi-long, nffi:N, gps, image:N or bytes:N"

// carrier names what limits the size of a service's messages.
func carrier(m *v1alpha1.Messaging) string {
	switch {
	case m.Via != "":
		return fmt.Sprintf("transport %s via a proxy", m.Transport)
	case m.SOAP != nil && m.SOAP.Envelope == v1alpha1.EnvelopeEXI:
		return fmt.Sprintf("transport %s and soap.envelope EXI", m.Transport)
	case m.Multicast:
		return fmt.Sprintf("transport %s and multicast", m.Transport)
	}
	return fmt.Sprintf("transport %s", m.Transport)
}

// plainWords of an error whose field is named already: the part after the value.
func plainWords(err error) string {
	if _, words, found := strings.Cut(err.Error(), ": "); found {
		return words
	}
	return err.Error()
}

// longestSender is the sender in message ids with the longest name.
func longestSender(hosts []topology.Node, app string) (longest string) {
	for _, host := range hosts {
		if sender := host.Name + "/" + app + "-reply"; len(sender) > len(longest) {
			longest = sender
		}
	}
	return longest
}

// push finds senders and addressees of periodic messages that do not run the app.
func (c *messagingCheck) push(path *field.Path) (errs field.ErrorList) {
	p := c.m.Push
	if p == nil {
		return nil
	}
	if p.Period.Std() < minPeriod || p.Period.Std() > longestTime {
		errs = append(errs, field.Invalid(path.Child("period"), p.Period, fmt.Sprintf("must be %s or more, and %s at most", minPeriod, wording.Time(longestTime))))
	}
	senders, members := membersOf(c.t, topology.Node{}, c.app.Name), membersOf(c.t, topology.Node{}, servingApp(c.app))
	none := func(members []apps.Member, name string) bool {
		return !slices.ContainsFunc(members, func(m apps.Member) bool { return m.IsAddressed(name) })
	}
	for i, from := range p.From {
		if none(senders, from) {
			errs = append(errs, field.Invalid(path.Child("from").Index(i), from, fmt.Sprintf("no node or group of this name runs app %s%s", c.app.Name, orMeant(from, senders))))
		}
	}
	switch {
	case len(senders) == 0 || len(members) == 0 || len(errs) > 0:
	case none(members, p.To) && slices.ContainsFunc(c.t.Nodes, func(n topology.Node) bool { return member(n).IsAddressed(p.To) }):
		errs = append(errs, field.Invalid(path.Child("to"), p.To, fmt.Sprintf("does not run app %s, and its requests are for nodes that do: run it there too, or name another node, a group or all. "+
			"For a server of your own, name its app in server", servingApp(c.app))))
	case none(members, p.To):
		errs = append(errs, field.Invalid(path.Child("to"), p.To, fmt.Sprintf("no node or group of this name runs app %s%s", servingApp(c.app), orMeant(p.To, members))))
	case !slices.ContainsFunc(senders, func(m apps.Member) bool { return pushes(p, m, members) }):
		errs = append(errs, field.Invalid(path.Child("to"), p.To, "reaches nobody but its sender: name another node, or a group with one"))
	}
	return errs
}

// orMeant asks for the member or group most similar to a misspelt one.
func orMeant(name string, members []apps.Member) string {
	names := []string{apps.AddresseeAll}
	for _, m := range members {
		names = append(names, m.Node, m.Group)
	}
	if near := wording.Nearest(name, names); near != "" {
		return ": " + wording.Meant(near)
	}
	return ": use a node, a group or all"
}

// pushes reports whether a member sends a push: it is to send, and somebody else is addressed.
func pushes(p *v1alpha1.Push, from apps.Member, members []apps.Member) bool {
	sends := len(p.From) == 0 || slices.ContainsFunc(p.From, from.IsAddressed)
	return sends && slices.ContainsFunc(members, func(to apps.Member) bool { return to.Node != from.Node && to.IsAddressed(p.To) })
}

// multicast finds nodes without the network that carries multicast.
func (c *messagingCheck) multicast(path *field.Path) (errs field.ErrorList) {
	if !c.m.Multicast {
		return nil
	}
	type network struct{ name, host string }
	first := map[string]network{} // of each group
	for _, host := range c.hosts {
		on, err := c.t.BroadcastNetwork(host, c.m.Network)
		if err != nil {
			return append(errs, field.Invalid(path.Child("network"), c.m.Network, err.Error()))
		}
		if other, known := first[host.Group]; known && other.name != on {
			return append(errs, field.Invalid(path.Child("network"), c.m.Network, fmt.Sprintf("nodes %s and %s of group %s have different first networks, %s and %s, and multicast goes one hop: name the network",
				other.host, host.Name, host.Group, other.name, on)))
		}
		first[host.Group] = network{on, host.Name}
	}
	return errs
}

// networks finds nodes that nobody can reach.
func (c *messagingCheck) networks(path *field.Path) field.ErrorList {
	for _, app := range []string{c.app.Name, servingApp(c.app)} {
		for _, host := range c.t.NodesRunning(app) {
			if len(host.Attachments) == 0 {
				return field.ErrorList{field.Invalid(path, app, fmt.Sprintf("node %s runs it and is on no network: attach the node to one", host.Name))}
			}
		}
	}
	return nil
}
