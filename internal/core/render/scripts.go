package render

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/mgen"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/messagescript"
)

// maxScriptBytes limits a script, because it is part of the agents' configuration.
const maxScriptBytes = 48 << 10

// scriptReference is the ConfigMap of an app's script, if any, and the field of the reference.
func scriptReference(app v1alpha1.App, path *field.Path) (*v1alpha1.KeyReference, *field.Path) {
	switch {
	case app.MGEN != nil:
		return app.MGEN.ConfigMap, path.Child("mgen")
	case app.Script != nil:
		return app.Script.ConfigMap, path.Child("script")
	case app.Messaging != nil:
		return app.Messaging.ConfigMap, path.Child("messaging")
	case app.Publisher != nil && app.Publisher.Pattern != nil:
		return app.Publisher.Pattern.ConfigMap, path.Child("publisher", "pattern")
	}
	return nil, nil
}

// scripts are all scripts of an experiment, parsed once. Invalid ones are left out, and CheckScripts reports them.
type scripts struct {
	in Input
	// byApp and ownMessages are the contents of apps' scripts.
	byApp       map[string]*mgen.Script
	ownMessages map[string][]v1alpha1.ScriptedMessage
	// resolved are the scripts for each node, by node/app.
	resolved map[string]*mgen.Script
	// topics are the destinations of flows.
	topics []string
	nodes  map[string]string
	// addresses are those of all nodes, and of the networks' broadcasts.
	addresses map[netip.Addr]bool
}

func newScripts(in Input) *scripts {
	s := &scripts{in: in, byApp: map[string]*mgen.Script{}, ownMessages: map[string][]v1alpha1.ScriptedMessage{},
		resolved: map[string]*mgen.Script{}, nodes: map[string]string{}, addresses: map[netip.Addr]bool{}}
	for _, node := range in.Topology.Nodes {
		for _, a := range node.Attachments {
			s.addresses[a.Address.Addr()], s.addresses[in.Topology.Broadcast(a.Network)] = true, true
		}
	}
	for _, app := range in.Experiment.Spec.Apps {
		if script, err := s.mgen(app); err == nil && script != nil {
			s.byApp[app.Name] = script
		}
		if messages, err := s.read(app); err == nil && messages != nil {
			s.ownMessages[app.Name] = messages
		}
	}
	for _, node := range in.Topology.Nodes {
		for _, name := range node.Apps {
			s.resolve(node, name)
		}
	}
	slices.Sort(s.topics)
	s.topics = slices.Compact(s.topics)
	return s
}

func (s *scripts) resolve(node topology.Node, name string) {
	app, _ := s.in.Topology.App(name)
	script := s.byApp[name]
	if app.MGEN == nil || script == nil {
		return
	}
	resolved, err := script.Resolve(s.hostResolver(node))
	if err != nil {
		return
	}
	s.resolved[node.Name+"/"+name] = resolved
	for _, topics := range resolved.Destinations() {
		s.topics = append(s.topics, topics...)
	}
	for _, a := range node.Attachments {
		s.nodes[a.Address.Addr().String()] = node.Name
	}
}

// text is the text of a script, false if it is in a ConfigMap whose content is not known.
func (s *scripts) text(inline string, reference *v1alpha1.KeyReference) (string, bool) {
	if reference == nil {
		return inline, true
	}
	text, known := s.in.Scripts[*reference]
	return text, known
}

// mgen is an app's MGEN script, nil if it has none or an unknown one.
func (s *scripts) mgen(app v1alpha1.App) (*mgen.Script, error) {
	var text string
	var known bool
	switch {
	case app.MGEN != nil:
		text, known = s.text(app.MGEN.Script, app.MGEN.ConfigMap)
	case app.Publisher != nil && app.Publisher.Pattern != nil:
		text, known = s.text(app.Publisher.Pattern.MGEN, app.Publisher.Pattern.ConfigMap)
	}
	if !known {
		return nil, nil
	}
	if len(text) > maxScriptBytes {
		return nil, fmt.Errorf("has %d bytes: use %d at most", len(text), maxScriptBytes)
	}
	return mgen.Parse(text)
}

// scriptedMessages are the messages of an app's script, or the ConfigMap that has them.
func scriptedMessages(app v1alpha1.App) ([]v1alpha1.ScriptedMessage, *v1alpha1.KeyReference) {
	switch {
	case app.Script != nil:
		return app.Script.Messages, app.Script.ConfigMap
	case app.Messaging != nil:
		return app.Messaging.Messages, app.Messaging.ConfigMap
	}
	return nil, nil
}

// read returns an app's messages, nil if it has none or unknown ones.
func (s *scripts) read(app v1alpha1.App) ([]v1alpha1.ScriptedMessage, error) {
	messages, reference := scriptedMessages(app)
	if reference != nil {
		text, known := s.in.Scripts[*reference]
		if !known {
			return nil, nil
		}
		var err error
		if messages, err = messagescript.Parse(reference.Key, text); err != nil {
			return nil, err
		}
	}
	if messages == nil {
		return nil, nil
	}
	messages = slices.Clone(messages)
	slices.SortStableFunc(messages, func(a, b v1alpha1.ScriptedMessage) int { return int(min(max(a.Std()-b.Std(), -1), 1)) })
	return messages, nil
}

// hostResolver resolves names of nodes, and addresses of a node or of all nodes of a network, as seen from a node.
func (s *scripts) hostResolver(from topology.Node) func(string) (string, error) {
	t := s.in.Topology
	return func(name string) (string, error) {
		if address, err := netip.ParseAddr(name); err == nil {
			return name, s.checkAddress(address)
		}
		node, found := t.Node(name)
		if !found {
			return "", fmt.Errorf("there is no node %q: use a node's name or radio address", name)
		}
		address, attached := t.ReachedAt(node, from)
		if !attached || !t.Reaches(from, node) {
			return "", fmt.Errorf("node %s has no network in common with node %s: use an address to which there are routes", from.Name, name)
		}
		return address.String(), nil
	}
}

func (s *scripts) checkAddress(address netip.Addr) error {
	if address.IsMulticast() || address == netip.AddrFrom4([4]byte{255, 255, 255, 255}) || s.addresses[address] {
		return nil
	}
	return fmt.Errorf("no node has this address: use a node's name or radio address, a multicast group, or a network's broadcast address")
}

func (s *scripts) flows(node topology.Node, app v1alpha1.App) *apps.Flows {
	script := s.resolved[node.Name+"/"+app.Name]
	if script == nil {
		return nil
	}
	flows := &apps.Flows{Script: script, Nodes: s.nodes, Topics: s.topics, Own: []netip.Addr{netip.AddrFrom4([4]byte{255, 255, 255, 255})}}
	for _, a := range node.Attachments {
		flows.Own = append(flows.Own, a.Address.Addr(), s.in.Topology.Broadcast(a.Network))
	}
	return flows
}

func (s *scripts) pattern(app v1alpha1.App) string {
	if script := s.byApp[app.Name]; app.Publisher != nil && script != nil {
		return script.String()
	}
	return ""
}

func (s *scripts) messages(node topology.Node, app v1alpha1.App) *apps.Scripted {
	all := s.ownMessages[app.Name]
	if all == nil {
		return nil
	}
	part := &apps.Scripted{Names: slices.Compact([]string{node.Name, node.Group, apps.AddresseeAll})}
	for _, m := range all {
		if m.From == node.Name {
			part.Messages = append(part.Messages, m)
		}
	}
	return part
}

// CheckScripts finds the errors of apps' scripts, as far as they are known. The topology must be valid.
func CheckScripts(in Input) (errs field.ErrorList) {
	s := newScripts(in)
	for i, app := range in.Experiment.Spec.Apps {
		path := field.NewPath("spec", "apps").Index(i)
		errs = append(errs, s.checkMessages(app, path)...)
		script, err := s.mgen(app)
		at := scriptPath(app, path)
		switch {
		case err != nil:
			errs = append(errs, s.invalid(app, at, err))
		case script != nil && app.MGEN != nil:
			errs = append(errs, s.checkFlows(app, script, at)...)
		case script != nil:
			errs = append(errs, s.checkPattern(app, script, at)...)
		}
	}
	return append(errs, s.checkNodes()...)
}

// scriptPath is the field of an app's MGEN script.
func scriptPath(app v1alpha1.App, path *field.Path) *field.Path {
	if reference, at := scriptReference(app, path); reference != nil {
		return at.Child("configMap")
	}
	if app.MGEN != nil {
		return path.Child("mgen", "script")
	}
	return path.Child("publisher", "pattern", "mgen")
}

// invalid is an error of an app's MGEN script, with the line's text.
func (s *scripts) invalid(app v1alpha1.App, path *field.Path, err error) *field.Error {
	inline := ""
	if app.MGEN != nil {
		inline, _ = s.text(app.MGEN.Script, app.MGEN.ConfigMap)
	} else {
		inline, _ = s.text(app.Publisher.Pattern.MGEN, app.Publisher.Pattern.ConfigMap)
	}
	var wrong *mgen.Error
	if lines := strings.Split(inline, "\n"); errors.As(err, &wrong) && wrong.Line <= len(lines) {
		return field.Invalid(path, strings.TrimSpace(lines[wrong.Line-1]), err.Error())
	}
	return field.Invalid(path, app.Name, err.Error())
}

// refusedGlobals are global commands that conflict with the timeline, which starts the scripts.
var refusedGlobals = []string{"START", "OFFSET"}

func checkGlobals(script *mgen.Script) error {
	for _, g := range script.Globals {
		if slices.Contains(refusedGlobals, g.Name) {
			return &mgen.Error{Line: g.Line, Reason: g.Name + " is not supported: the timeline starts the app, and the script's times count from that"}
		}
	}
	return nil
}

func (s *scripts) checkFlows(app v1alpha1.App, script *mgen.Script, path *field.Path) field.ErrorList {
	err := script.CheckRun()
	if err == nil {
		err = checkGlobals(script)
	}
	for _, node := range s.in.Topology.NodesRunning(app.Name) {
		if err != nil {
			break
		}
		if err = checkInterfaces(node, script); err == nil {
			_, err = script.Resolve(s.hostResolver(node))
		}
	}
	if err != nil {
		return field.ErrorList{s.invalid(app, path, err)}
	}
	return nil
}

func checkInterfaces(node topology.Node, script *mgen.Script) error {
	check := func(line int, name string) error {
		if _, ok := node.Address(name); name != "" && !ok {
			return &mgen.Error{Line: line, Reason: fmt.Sprintf("INTERFACE %s: node %s is on no network of that name", name, node.Name)}
		}
		return nil
	}
	for _, g := range script.Globals {
		if g.Name == "INTERFACE" {
			if err := check(g.Line, g.Value); err != nil {
				return err
			}
		}
	}
	for _, e := range script.Events {
		if err := errors.Join(check(e.Line, e.Interface), check(e.Line, e.Options.Interface)); err != nil {
			return err
		}
	}
	return nil
}

// checkPattern finds commands in a publisher's pattern that conflict with the publisher's settings or are not supported.
func (s *scripts) checkPattern(app v1alpha1.App, script *mgen.Script, path *field.Path) field.ErrorList {
	err := checkGlobals(script)
	for _, g := range script.Globals {
		if err == nil {
			err = &mgen.Error{Line: g.Line, Reason: g.Name + " is not supported: it is for flows of mgen itself"}
		}
	}
	for _, e := range script.Events {
		if reason := whyNotInPattern(e); err == nil && reason != "" {
			err = &mgen.Error{Line: e.Line, Reason: fmt.Sprintf("%s: %s", e.Type, reason)}
		}
	}
	if err == nil {
		_, err = mgen.NewSchedule(script, 0)
	}
	largest := trafficconfig.ProtocolOf(app.Publisher.Protocol).MaxPayloadBytes
	if err == nil && len(script.Flows()) == 0 {
		err = errors.New("has no flow: want an ON event, such as 0.0 ON 1 PERIODIC [1 100]")
	}
	if least, most := script.Sizes(); err == nil && (least < minPatternBytes || most > largest) {
		err = fmt.Errorf("messages have %d to %d bytes: use %d at least, as their ids must fit, and %d at most with %s", least, most, minPatternBytes, largest, app.Publisher.Protocol)
	}
	if err != nil {
		return field.ErrorList{s.invalid(app, path, err)}
	}
	return nil
}

// minPatternBytes is the minimum size of a pattern's messages, with room for an id with the longest names of entities.
const minPatternBytes = 48

func whyNotInPattern(e mgen.Event) string {
	o := e.Options
	o.Pattern, o.Count = nil, nil
	switch {
	case e.Type == mgen.Listen || e.Type == mgen.Ignore || e.Type == mgen.Join || e.Type == mgen.Leave:
		return "is not for a publisher's pattern: its subscribers receive"
	case o.String() != "":
		return fmt.Sprintf("%s is not for a publisher's pattern, whose protocol, topic and broker are the destination: use only PERIODIC, POISSON, JITTER, BURST and COUNT", strings.TrimSpace(o.String()))
	}
	return ""
}

// checkNodes finds scripts with a flow's number, or a port to listen on, that another app of their node has.
func (s *scripts) checkNodes() (errs field.ErrorList) {
	reported := map[string]bool{}
	for _, node := range s.in.Topology.Nodes {
		users := map[string]string{}
		for _, name := range node.Apps {
			app, _ := s.in.Topology.App(name)
			for _, p := range portsOf(s.in.Topology, node, app) {
				users[p.String()] = name
			}
		}
		for _, name := range node.Apps {
			script := s.resolved[node.Name+"/"+name]
			if script == nil {
				continue
			}
			for _, what := range exclusiveNumbers(script) {
				if other, used := users[what]; used && other != name && !reported[name+what] {
					reported[name+what] = true
					i := slices.IndexFunc(s.in.Experiment.Spec.Apps, func(a v1alpha1.App) bool { return a.Name == name })
					errs = append(errs, field.Invalid(field.NewPath("spec", "apps").Index(i).Child("mgen"), name,
						fmt.Sprintf("%s is used by app %s too, which node %s also runs: use another number", what, other, node.Name)))
				}
				users[what] = name
			}
		}
	}
	return errs
}

// exclusiveNumbers are the numbers that only one script on a node may have.
func exclusiveNumbers(script *mgen.Script) []string {
	found := map[string]bool{}
	for _, flow := range script.Flows() {
		found[fmt.Sprintf("flow %d", flow)] = true
	}
	for _, e := range script.Events {
		for _, ports := range e.Ports {
			for number := int(ports.First); e.Type == mgen.Listen && number <= int(ports.Last); number++ {
				found[port{number, e.Protocol == mgen.UDP}.String()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// checkMessages finds messages of a script from or to nodes without the app, or too small for their content.
func (s *scripts) checkMessages(app v1alpha1.App, path *field.Path) (errs field.ErrorList) {
	inline, reference := scriptedMessages(app)
	path = messagesPath(app, path)
	messages, err := s.read(app)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("configMap"), reference.Key, err.Error())}
	}
	hosts, contents, serving := s.in.Topology.NodesRunning(app.Name), newScriptedContents(app), servingApp(app)
	servers := s.in.Topology.NodesRunning(serving)
	for _, m := range messages {
		err := checkMessage(app.Name, serving, hosts, servers, m)
		if err == nil && contents != nil {
			err = contents.check(m)
		}
		if err != nil {
			at := path.Child("messages")
			if reference != nil {
				at = path.Child("configMap")
			} else if i := slices.Index(inline, m); i >= 0 {
				at = at.Index(i)
			}
			errs = append(errs, field.Invalid(at, fmt.Sprintf("at %s from %s to %s", m.At, m.From, m.To), err.Error()))
		}
	}
	return errs
}

// lateWarnings are about what an app's script has after the app's stop. Invalid scripts are left out.
func (s *scripts) lateWarnings(app v1alpha1.App, path *field.Path, runs time.Duration) field.ErrorList {
	late := func(at *field.Path, what string, times []time.Duration) field.ErrorList {
		after := slices.DeleteFunc(slices.Clone(times), func(at time.Duration) bool { return at < runs })
		if len(after) == 0 {
			return nil
		}
		return field.ErrorList{field.Invalid(at, wording.Time(slices.Max(after)), fmt.Sprintf("the app runs for %s at most: %d of %d %s come after that, and are not sent", wording.Time(runs), len(after), len(times), what))}
	}
	var times []time.Duration
	if messages, err := s.read(app); err == nil && messages != nil {
		for _, m := range messages {
			times = append(times, m.Std())
		}
		at := messagesPath(app, path).Child("messages")
		if reference, script := scriptReference(app, path); reference != nil {
			at = script.Child("configMap")
		}
		return late(at, "messages", times)
	}
	script, err := s.mgen(app)
	if err != nil || script == nil {
		return nil
	}
	lead, _ := leadOf(app, path)
	for _, e := range script.Events {
		if e.Type == mgen.On {
			times = append(times, lead.Std()+e.At)
		}
	}
	return late(scriptPath(app, path), "flows", times)
}

// messagesPath is the field of an app with scripted messages.
func messagesPath(app v1alpha1.App, path *field.Path) *field.Path {
	if app.Messaging != nil {
		return path.Child("messaging")
	}
	return path.Child("script")
}

func checkMessage(app, serving string, hosts, servers []topology.Node, m v1alpha1.ScriptedMessage) error {
	isNode := func(hosts []topology.Node, name string) bool {
		return slices.ContainsFunc(hosts, func(n topology.Node) bool { return n.Name == name })
	}
	if !isNode(hosts, m.From) {
		return fmt.Errorf("from %s: no node of this name runs app %s", m.From, app)
	}
	addressed, inGroup := 0, 0
	for _, n := range servers {
		if n.Group == m.To && n.Name != m.To {
			inGroup++
		}
		if n.Name != m.From && (n.Name == m.To || n.Group == m.To || m.To == apps.AddresseeAll) {
			addressed++
		}
	}
	switch {
	case isNode(servers, m.To) && inGroup > 0:
		return fmt.Errorf("to %s: is the name of a node and of a group of other nodes: give the group another name", m.To)
	case addressed == 0:
		return fmt.Errorf("to %s: no other node or group of this name runs app %s: use a node, a group or all", m.To, serving)
	}
	if need := military.Size(military.Message{Type: m.Type, From: m.From, To: m.To, Text: m.Text}, m.From+"/"+app); m.Bytes != 0 && int(m.Bytes) < need {
		return fmt.Errorf("bytes %d: use %d at least, for the text and the message's metadata", m.Bytes, need)
	}
	return nil
}
