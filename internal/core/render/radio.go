package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/capturefilter"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// RunCapture is the name of the capture in an experiment's own spec.
	RunCapture = "run"
	// everyNode stands for all nodes of a network in links and changes.
	everyNode = v1alpha1.EveryNode
	// defaultCaptureLimit is the limit in bytes if the API server has not set the default.
	defaultCaptureLimit = 256 << 20
	// radioNetworkLimit is the size of the JSON in bytes. etcd accepts 1.5 MiB, including radiod's status.
	radioNetworkLimit = 1 << 20
	// Bounds of RadioNetworkSpec's lists.
	maxChanges, maxCaptures = 4096, 256
)

// links are a network's links: those of its spec, then those from its base with the waveform's downlink. If the spec has a
// link from the base to all, that one counts.
func links(network v1alpha1.Network, waveform v1alpha1.WaveformSpec) []v1alpha1.GroupLink {
	all := slices.Clone(network.Links)
	if waveform.Downlink == nil {
		return all
	}
	for _, base := range network.Base {
		same := func(l v1alpha1.GroupLink) bool { return l.From == base && l.To == everyNode }
		if !slices.ContainsFunc(all, same) {
			all = append(all, v1alpha1.GroupLink{From: base, To: everyNode, LinkModel: *waveform.Downlink})
		}
	}
	return all
}

// Changes are those of the timeline to a network, in order of time.
func Changes(e *v1alpha1.Experiment, network string) (timed []v1alpha1.TimedRadioChange) {
	for _, entry := range e.Spec.Timeline {
		for _, change := range entry.Set {
			if change.Network == network {
				timed = append(timed, v1alpha1.TimedRadioChange{AtNanoseconds: int64(entry.At.Std()), RadioChange: change})
			}
		}
	}
	sortChanges(timed)
	return timed
}

func sortChanges(timed []v1alpha1.TimedRadioChange) {
	slices.SortStableFunc(timed, func(a, b v1alpha1.TimedRadioChange) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
}

// AddChanges adds manual changes to those of a network, in order of time. At the same time the existing one stays first.
// Changes are never removed, because the radio applies all of them again after a restart.
func AddChanges(has []v1alpha1.TimedRadioChange, more ...v1alpha1.TimedRadioChange) []v1alpha1.TimedRadioChange {
	all := slices.Concat(has, more)
	sortChanges(all)
	return all
}

// captures are those of a network in the spec, none or one.
func captures(in Input, network string) []v1alpha1.RadioCapture {
	collect := in.Experiment.Spec.Collect
	if collect == nil {
		return nil
	}
	var names []string
	wanted := false
	for _, wish := range collect.Captures {
		of, name, some := strings.Cut(wish, "/")
		if of != network {
			continue
		}
		wanted = true
		if !some {
			name = everyNode
		}
		names = append(names, name)
	}
	if !wanted {
		return nil
	}
	return []v1alpha1.RadioCapture{radioCapture(RunCapture, expandNodes(in.Topology, network, names), v1alpha1.CaptureSpec{
		Filter: collect.CaptureFilter, SnapLengthBytes: collect.CaptureSnapLengthBytes, Limit: collect.CaptureLimit,
	})}
}

// Capture renders a Capture object for its network.
func Capture(t *topology.Topology, c *v1alpha1.Capture) v1alpha1.RadioCapture {
	return radioCapture(c.Name, expandNodes(t, c.Spec.Network, c.Spec.Nodes), c.Spec)
}

func radioCapture(name string, nodes []string, spec v1alpha1.CaptureSpec) v1alpha1.RadioCapture {
	c := v1alpha1.RadioCapture{Name: name, Nodes: nodes, Filter: spec.Filter, LimitBytes: defaultCaptureLimit}
	if spec.SnapLengthBytes != nil {
		c.SnapLengthBytes = *spec.SnapLengthBytes
	}
	if spec.Limit != nil {
		c.LimitBytes = spec.Limit.Value()
	}
	return c
}

// expandNodes expands names of nodes and groups to nodes attached to a network, in the order of the spec. It returns nil for
// all nodes.
func expandNodes(t *topology.Topology, network string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	var found []string
	all := attached(t, network, everyNode)
	for _, node := range all {
		if slices.ContainsFunc(names, func(name string) bool { return hasName(node, name) }) {
			found = append(found, node.Name)
		}
	}
	if len(found) == len(all) {
		return nil
	}
	return found
}

func attached(t *topology.Topology, network, name string) (nodes []topology.Node) {
	for _, node := range t.Nodes {
		if _, on := node.Address(network); on && hasName(node, name) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func hasName(node topology.Node, name string) bool {
	return v1alpha1.IsCalled(name, node.Name, node.Group)
}

// PlanCaptures are a network's captures for the run record, with every node named.
func PlanCaptures(t *topology.Topology, network string, captures ...v1alpha1.RadioCapture) (planned []runapi.PlannedCapture) {
	for _, c := range captures {
		nodes := c.Nodes
		if len(nodes) == 0 {
			for _, node := range attached(t, network, everyNode) {
				nodes = append(nodes, node.Name)
			}
		}
		planned = append(planned, runapi.PlannedCapture{Name: c.Name, Network: network, Nodes: nodes, Filter: c.Filter, LimitBytes: c.LimitBytes})
	}
	return planned
}

// Fits reports whether a radio network is within the limits of its definition and etcd.
func Fits(spec *v1alpha1.RadioNetworkSpec) bool {
	text, err := json.Marshal(spec)
	return err == nil && len(text) <= radioNetworkLimit && len(spec.Changes) <= maxChanges && len(spec.Captures) <= maxCaptures
}

// CheckRadio finds links, changes, bases and captures of the spec that would have no effect.
func CheckRadio(spec *v1alpha1.ExperimentSpec, t *topology.Topology) (errs field.ErrorList) {
	path := field.NewPath("spec")
	for i, network := range spec.Networks {
		errs = append(errs, checkCommEffects(spec, network, path.Child("networks").Index(i))...)
		errs = append(errs, checkLink(network.Link, path.Child("networks").Index(i).Child("link"))...)
		for j := range network.Links {
			at, link := path.Child("networks").Index(i).Child("links").Index(j), &network.Links[j]
			if len(attached(t, network.Name, everyNode)) > 0 { // a campaign may leave a network without nodes
				errs = append(errs, checkEnds(t, network.Name, link.From, link.To, at)...)
			}
			errs = append(errs, checkLink(&link.LinkModel, at)...)
		}
		for j, name := range network.Base {
			if err := checkOnNetwork(t, network.Name, name); err != nil {
				errs = append(errs, field.Invalid(path.Child("networks").Index(i).Child("base").Index(j), name, err.Error()))
			}
		}
	}
	for i, entry := range spec.Timeline {
		for j, change := range entry.Set {
			errs = append(errs, CheckChange(t, change, path.Child("timeline").Index(i).Child("set").Index(j))...)
		}
	}
	if spec.Collect != nil {
		errs = append(errs, checkCollect(spec.Collect, t, path.Child("collect"))...)
	}
	return errs
}

func checkCollect(collect *v1alpha1.Collect, t *topology.Topology, path *field.Path) (errs field.ErrorList) {
	for i, wish := range collect.Captures {
		network, name, some := strings.Cut(wish, "/")
		if !some {
			name = everyNode
		}
		if err := checkOnNetwork(t, network, name); err != nil {
			errs = append(errs, field.Invalid(path.Child("captures").Index(i), wish, err.Error()))
		}
	}
	errs = append(errs, checkFilter(collect.CaptureFilter, path.Child("captureFilter"))...)
	return append(errs, checkLimit(collect.CaptureLimit, path.Child("captureLimit"))...)
}

// CheckChange finds names in a change of a network that do not exist.
func CheckChange(t *topology.Topology, change v1alpha1.RadioChange, path *field.Path) (errs field.ErrorList) {
	if err := checkOnNetwork(t, change.Network, everyNode); err != nil {
		return field.ErrorList{field.Invalid(path.Child("network"), change.Network, err.Error())}
	}
	errs = checkEnds(t, change.Network, change.From, change.To, path)
	return append(errs, checkPatch(change.Link, path.Child("link"))...)
}

// checkEnds finds ends of a link that stand for no node of its network.
func checkEnds(t *topology.Topology, network, from, to string, path *field.Path) (errs field.ErrorList) {
	for _, end := range []struct{ key, name string }{{"from", from}, {"to", to}} {
		if err := checkOnNetwork(t, network, end.name); err != nil && !v1alpha1.IsEveryNode(end.name) {
			errs = append(errs, field.Invalid(path.Child(end.key), end.name, err.Error()))
		}
	}
	return errs
}

// CheckCapture finds the errors of a Capture.
func CheckCapture(t *topology.Topology, spec *v1alpha1.CaptureSpec) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if err := checkOnNetwork(t, spec.Network, everyNode); err != nil {
		return field.ErrorList{field.Invalid(path.Child("network"), spec.Network, err.Error())}
	}
	for i, name := range spec.Nodes {
		if err := checkOnNetwork(t, spec.Network, name); err != nil {
			errs = append(errs, field.Invalid(path.Child("nodes").Index(i), name, err.Error()))
		}
	}
	return append(errs, CheckCaptureAlone(spec)...)
}

// CheckCaptureAlone finds the errors of a Capture that do not depend on its experiment.
func CheckCaptureAlone(spec *v1alpha1.CaptureSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := append(checkFilter(spec.Filter, path.Child("filter")), checkLimit(spec.Limit, path.Child("limit"))...)
	if spec.Duration != "" && spec.Duration.Std() <= 0 {
		errs = append(errs, field.Invalid(path.Child("duration"), string(spec.Duration), "must be above zero, such as 5m, or be left out"))
	}
	return errs
}

// checkOnNetwork returns why a name stands for no node of a network.
func checkOnNetwork(t *topology.Topology, network, name string) error {
	if _, found := t.Subnets[network]; !found {
		return fmt.Errorf("the experiment has no network %q: it has %s", network, strings.Join(networkNames(t), ", "))
	}
	if len(attached(t, network, name)) > 0 {
		return nil
	}
	if name == everyNode {
		return fmt.Errorf("no node is attached to network %q", network)
	}
	if !slices.ContainsFunc(t.Nodes, func(n topology.Node) bool { return hasName(n, name) }) {
		return fmt.Errorf("the experiment has no node or group %q", name)
	}
	return fmt.Errorf("%q is not attached to network %q", name, network)
}

func networkNames(t *topology.Topology) (names []string) {
	for name := range t.Subnets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func checkLimit(limit *resource.Quantity, path *field.Path) field.ErrorList {
	if limit == nil {
		return nil
	}
	if message := WrongCaptureLimit(*limit); message != "" {
		return field.ErrorList{field.Invalid(path, limit.String(), message)}
	}
	return nil
}

// WrongCaptureLimit returns the error in a capture's size; empty for none.
func WrongCaptureLimit(limit resource.Quantity) string {
	if limit.Sign() <= 0 {
		return "must be above zero, such as 256Mi"
	}
	return wrongAmount(corev1.ResourceMemory, limit)
}

func checkFilter(filter string, path *field.Path) field.ErrorList {
	if err := capturefilter.Check(filter); err != nil {
		return field.ErrorList{field.Invalid(path, filter, err.Error())}
	}
	return nil
}

// CheckBase finds networks with a base whose waveform has no downlink, and the reverse.
func CheckBase(spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec) (errs field.ErrorList) {
	for i, network := range spec.Networks {
		waveform, known := waveforms[network.Name]
		path := field.NewPath("spec", "networks").Index(i).Child("base")
		switch {
		case !known:
		case waveform.Downlink != nil && len(network.Base) == 0:
			errs = append(errs, field.Required(path, fmt.Sprintf("waveform %s has a downlink: name the nodes or groups at the base, whose frames take it", network.Waveform)))
		case waveform.Downlink == nil && len(network.Base) > 0:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("waveform %s has no downlink: leave out base, or write links from it to *", network.Waveform)))
		}
	}
	return errs
}
