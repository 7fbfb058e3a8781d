// Package crdrules has the CEL rules that concern an experiment as a whole: references between its parts, names, ids and subnets.
// Rules about one field are markers beside that field in operators/api/v1alpha1. These here are composed of fragments, as a
// marker of several kilobytes on one line would be unreadable. `make generate` puts both into crds/.
//
// A message starts with the path of its field, with list entries by their names, so that people and `vignette validate` find it.
// In the cluster a message names only the first problem: the API server's cost estimate assumes that joined strings are endless.
//
// The rules use the cidr library and two-variable comprehensions. An API server takes no new rule that the version
// before it would not know: Kubernetes 1.33 or later.
package crdrules

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Extent says how many problems a message names.
type Extent int

const (
	// First problem of each rule: as much as the API server's cost limits allow.
	First Extent = iota
	// All problems of each rule, separated by Separator: for validation without a cluster.
	All
)

// Separator between the problems of one message.
const Separator = "; "

// firstOrAll names the first or all of a list of strings.
func (e Extent) firstOrAll(list, separator string) string {
	if e == First {
		return list + "[0]"
	}
	return fmt.Sprintf("%s.join('%s')", list, separator)
}

// Apply adds the rules of a definition's kind to its schema, and replaces existing ones.
func Apply(crd *apiextensionsv1.CustomResourceDefinition, extent Extent) error {
	if crd.Spec.Names.Kind == "Scenario" && extent == All {
		addSizeMessages(crd)
	}
	if crd.Spec.Names.Kind != "Experiment" {
		return nil
	}
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	spec, found := root.Properties["spec"]
	if !found {
		return fmt.Errorf("definition %s has no property spec", crd.Name)
	}
	root.XValidations = merge(root.XValidations, immutability())
	spec.XValidations = merge(spec.XValidations, extent.experimentRules())
	root.Properties["spec"] = spec
	return nil
}

// sizeMessages are detailed messages of rules about the size of a generated movement, by how their plain ones begin.
var sizeMessages = map[string]string{
	"platforms times": "string(self.platforms) + ' platforms for ' + self.duration + ' have ' + " +
		"string(self.platforms * (int(duration(self.duration).getSeconds()) + 1)) + ' positions, one of each in each second: want at most 90000000, by fewer platforms or a shorter duration'",
	"with propagation, pairs": "string(self.synthetic.platforms) + ' platforms for ' + self.synthetic.duration + ' have ' + " +
		"string(self.synthetic.platforms * (self.synthetic.platforms - 1) / 2 * (int(duration(self.synthetic.duration).getSeconds()) + 1)) + " +
		"' pathlosses, one of each pair in each second: want at most 5000000000, by fewer platforms or a shorter duration'",
}

// addSizeMessages makes rules say how large a movement is, for which the API server's cost limits leave no room.
func addSizeMessages(crd *apiextensionsv1.CustomResourceDefinition) {
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	for _, rules := range []apiextensionsv1.ValidationRules{spec.XValidations, spec.Properties["synthetic"].XValidations} {
		for i := range rules {
			for begin, message := range sizeMessages {
				if strings.HasPrefix(rules[i].Message, begin) {
					rules[i].MessageExpression = message
				}
			}
		}
	}
}

func merge(have, add apiextensionsv1.ValidationRules) apiextensionsv1.ValidationRules {
	for _, rule := range add {
		have = slices.DeleteFunc(have, func(r apiextensionsv1.ValidationRule) bool { return r.Message == rule.Message })
		have = append(have, rule)
	}
	return have
}

// experimentRules are the rules of Experiment.spec.
func (e Extent) experimentRules() apiextensionsv1.ValidationRules {
	return slices.Concat(e.nodeRules(), e.idRules(), e.networkRules(), e.brokerRules(), e.bridgeRules(), e.timelineRules(), e.captureRules())
}

// refuse makes a rule of a CEL expression that lists problems; an empty list is valid.
func (e Extent) refuse(message, problems string) apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{
		Rule:              "size(" + problems + ") == 0",
		Message:           message,
		MessageExpression: e.firstOrAll(problems, Separator),
	}
}

// refuseEach is refuse for a list of lists, for lists within a list.
func (e Extent) refuseEach(message, lists string) apiextensionsv1.ValidationRule {
	lists += ".filter(l, size(l) > 0)"
	rule := apiextensionsv1.ValidationRule{
		Rule:              "size(" + lists + ") == 0",
		Message:           message,
		MessageExpression: lists + "[0][0]",
	}
	if e == All {
		rule.MessageExpression = fmt.Sprintf("%[1]s.map(l, l.join('%[2]s')).join('%[2]s')", lists, Separator)
	}
	return rule
}

// let names a value that a rule uses, computed once. CEL in definitions has no let; a list of one element does the same.
func let(name, value string, rule apiextensionsv1.ValidationRule) apiextensionsv1.ValidationRule {
	rule.Rule = fmt.Sprintf("[%s].all(%s, %s)", value, name, rule.Rule)
	rule.MessageExpression = fmt.Sprintf("[%s].map(%s, %s)[0]", value, name, rule.MessageExpression)
	return rule
}

// messageStart is the start of a message about part of a named entry of a list of the spec.
func messageStart(list, name, part string) string {
	return fmt.Sprintf("'spec.%s[' + %s + ']%s: ' + ", list, name, part)
}

// eachEntry lists the problems of the entries of a list within a list. The start of the message is made once, outside the loop, as
// the API server would overestimate its cost inside.
func eachEntry(start, list, entry, wrong, rest string) string {
	return fmt.Sprintf("[%s].map(start, %s.map(%s, %s, start + %s))[0]", start, list, entry, wrong, rest)
}

// count is the number of nodes that an entry of nodes stands for.
func count(node string) string { return fmt.Sprintf("(has(%[1]s.count) ? %[1]s.count : 1)", node) }

// group of a node, by default its name.
func group(node string) string {
	return fmt.Sprintf("(has(%[1]s.group) ? %[1]s.group : %[1]s.name)", node)
}

// runsApp reports, in CEL, whether an entry of nodes runs an app.
func runsApp(node, app string) string {
	return fmt.Sprintf("has(%[1]s.apps) && %[2]s in %[1]s.apps", node, app)
}

// appOf and nodeOf are the parts of a reference such as app or node/app.
func appOf(ref string) string { return fmt.Sprintf("%[1]s.substring(%[1]s.lastIndexOf('/') + 1)", ref) }
func nodeOf(ref string) string {
	return fmt.Sprintf("%[1]s.substring(0, %[1]s.lastIndexOf('/'))", ref)
}

// number is the pattern of the ending that count adds to names, such as -12.
const number = "'-[1-9][0-9]{0,3}$'"

// nodeExists reports, in CEL, whether an entry m of nodes with a property has, or generates, a node's name. The name's number is found
// once, outside the loop, to keep the rule's cost within the limits.
func nodeExists(name, property string) string {
	return withNameParts(name, fmt.Sprintf("self.nodes.exists(m, %s%s)", property, isNode))
}

// withNameParts names the parts of a name within a condition: z the name, b what precedes a number at its end, k that number or 0.
func withNameParts(name, condition string) string {
	return fmt.Sprintf("[%s].exists(z, [z.find(%s)].exists(s, [z.substring(0, size(z) - size(s))].exists(b, [s == '' ? 0 : int(s.substring(1))].exists(k, %s))))",
		name, number, condition)
}

// withNodes gives a rule the maps counts, with how many nodes each name generates or 0 without count, and appsOf, with the apps of
// each name surrounded by spaces. Two equal names, which another rule refuses, would be an error of the maps: then the rule holds.
func withNodes(rule apiextensionsv1.ValidationRule) apiextensionsv1.ValidationRule {
	rule = let("counts", "self.nodes.transformMapEntry(i, m, {m.name: has(m.count) ? m.count : 0})",
		let("appsOf", "self.nodes.transformMapEntry(i, m, {m.name: has(m.apps) ? ' ' + m.apps.join(' ') + ' ' : ''})", rule))
	rule.Rule += " || self.nodes.exists(i, n, self.nodes.exists(j, m, j < i && m.name == n.name))"
	return rule
}

// withGroups gives a rule the maps of withNodes, and the list groups.
func withGroups(rule apiextensionsv1.ValidationRule) apiextensionsv1.ValidationRule {
	return withNodes(let("groups", "self.nodes.map(m, "+group("m")+")", rule))
}

// isMember reports, in CEL, whether a name is that of a group or a node, in a rule with withGroups.
func isMember(name string) string {
	return withNameParts(name, "z in groups || z in counts && counts[z] == 0 || b in counts && k > 0 && k <= counts[b]")
}

// isNode reports, in CEL, whether m is, or generates, the node z.
const isNode = "(has(m.count) ? m.name == b && k > 0 && k <= m.count : m.name == z)"

func (e Extent) nodeRules() apiextensionsv1.ValidationRules {
	unknown := func(list, what string) apiextensionsv1.ValidationRule {
		return e.refuse(fmt.Sprintf("a node names an unknown %s", what), fmt.Sprintf(
			"[self.%[1]s.map(p, p.name)].map(known, self.nodes.map(n, has(n.%[1]s) && !n.%[1]s.all(a, a in known), "+
				"%[2]s'there is no %[3]s ' + %[4]s))[0]",
			list, messageStart("nodes", "n.name", "."+list), what, e.firstOrAll(fmt.Sprintf("n.%s.filter(a, !(a in known))", list), ", ")))
	}
	most := fmt.Sprintf("an experiment has at most %d nodes, those of count counted", v1alpha1.MaxNodes)
	rules := apiextensionsv1.ValidationRules{
		let("total", fmt.Sprintf("self.nodes.map(n, %s).sum()", count("n")), apiextensionsv1.ValidationRule{
			Rule:              fmt.Sprintf("total <= %d", v1alpha1.MaxNodes),
			Message:           most,
			MessageExpression: fmt.Sprintf("'spec.nodes: %s'", most),
		}),
		unknown("apps", "app"),
		unknown("networks", "network"),
		e.ownApps("an app with an image runs on a virtual machine", "vm", "has(p.image)",
			" brings an image, and images do not run in a virtual machine: leave out its image if its command is a program of the guest, or make the node a pod"),
		e.ownApps("a program of a guest runs on a pod", "pod", "has(p.command) && !has(p.image)",
			" has a command and no image, so that it is a program of a guest: give it an image, or make the node a virtual machine by runtime: vm"),
	}
	for _, p := range trafficconfig.Protocols {
		if p.Server != "" {
			rules = append(rules, e.onePerNode(p))
		}
	}
	return append(rules,
		e.refuse("a node has the name of one that count makes", fmt.Sprintf(
			"self.nodes.map(n, !has(n.count) && %s, %sn.name + ' is also one of the nodes that count makes of ' + n.name.substring(0, n.name.lastIndexOf('-')))",
			nodeExists("n.name", "has(m.count) && "), messageStart("nodes", "n.name", ".name"))),
		e.refuse("a group has the name of a node of another group", fmt.Sprintf(
			"self.nodes.map(n, has(n.group) && self.nodes.exists(m, m.name == n.group && has(m.group) && m.group != n.group), "+
				"%sn.group + ' is also the name of a node of another group')", messageStart("nodes", "n.name", ".group"))))
}

// ownApps refuses a user's own apps on nodes of a runtime that cannot run them.
func (e Extent) ownApps(message, runtime, is, remedy string) apiextensionsv1.ValidationRule {
	wrong := "n.apps.filter(a, a in own)"
	return e.refuse(message, fmt.Sprintf(
		"[self.apps.filter(p, %s).map(p, p.name)].map(own, self.nodes.map(n, n.runtime == '%s' && has(n.apps) && n.apps.exists(a, a in own), %s%s + '%s'))[0]",
		is, runtime, messageStart("nodes", "n.name", ".apps"), e.firstOrAll(wrong, ", "), remedy))
}

// onePerNode refuses a second app on a node that serves a protocol, as it needs the first one's port.
func (e Extent) onePerNode(p protocol.Protocol) apiextensionsv1.ValidationRule {
	return e.refuse("a node runs two apps of the kind "+p.Server, fmt.Sprintf(
		"[self.apps.filter(p, %s).map(p, p.name)].map(brokers, "+
			"self.nodes.map(n, has(n.apps) && n.apps.filter(a, a in brokers).size() > 1, %s'a node has room for one %s, as it takes port %d'))[0]",
		hasAny("p", p.Brokers), messageStart("nodes", "n.name", ".apps"), p.Server, p.Port))
}

// firstIDs is the list of the nodes' NEM ids, with the first one of each counted entry.
func firstIDs() string {
	return fmt.Sprintf("self.nodes.transformList(i, n, has(n.nem) ? n.nem : 1 + self.nodes.transformList(j, m, j < i, %s).sum())", count("m"))
}

// overlaps reports, in CEL, whether the i-th range, from a to z, overlaps another one. To keep 256 × 256 pairs within the API
// server's limit of a call, the condition that most pairs fail comes first.
func overlaps(first, last, unless string) string {
	return fmt.Sprintf("[%[1]s[i]].exists(a, [%[2]s[i]].exists(z, %[1]s.exists(j, f, f <= z && %[2]s[j] >= a && %[3]s)))", first, last, unless)
}

func (e Extent) idRules() apiextensionsv1.ValidationRules {
	// Ids by place are always different, so one of the two is explicit: n, the later one if both are.
	sameID := overlaps("first", "last", "j != i && (j < i || !has(self.nodes[j].nem))")
	lastIDs := fmt.Sprintf("self.nodes.transformList(i, n, first[i] + %s - 1)", count("n"))
	// Platforms of a scenario have numbers or words as names; words count as -1.
	bound := func(end int) string {
		return fmt.Sprintf("self.nodes.map(n, has(n.platforms) && n.platforms.matches('^[0-9]{1,6}-[0-9]{1,6}$') ? int(n.platforms.split('-')[%d]) : "+
			"has(n.platform) && n.platform.matches('^[0-9]{1,6}$') ? int(n.platform) : -1)", end)
	}
	samePlatform := fmt.Sprintf("(low[i] >= 0 ? %s : has(n.platform) && self.nodes.exists(j, m, has(m.platform) && m.platform == n.platform && j < i))",
		overlaps("low", "high", "j < i"))
	return apiextensionsv1.ValidationRules{
		let("first", firstIDs(), let("last", lastIDs, e.refuse("two nodes have the same NEM id", fmt.Sprintf(
			"self.nodes.transformList(i, n, has(n.nem) && %s, %s'another node has this NEM id, or one of these, too (without nem, a node has the number of its place among all nodes)')",
			sameID, messageStart("nodes", "n.name", ".nem"))))),
		let("low", bound(0), let("high", bound(1), e.refuse("two nodes have the same platform", fmt.Sprintf(
			"self.nodes.transformList(i, n, %s, 'spec.nodes[' + n.name + '].' + (has(n.platforms) ? 'platforms: ' + n.platforms : has(n.platform) ? 'platform: ' + n.platform : '') + ' is taken by another node')",
			samePlatform)))),
	}
}

func (e Extent) networkRules() apiextensionsv1.ValidationRules {
	overlap := "j < i && isCIDR(v.subnet) && (cidr(v.subnet).containsCIDR(w.subnet) || cidr(w.subnet).containsCIDR(v.subnet))"
	// The highest host part of a subnet by its prefix length, from 17 on; shorter prefixes have room for every NEM id.
	highest := "['32766', '16382', '8190', '4094', '2046', '1022', '510', '254', '126', '62', '30', '14', '6', '2'][cidr(w.subnet).prefixLength() - 17]"
	tooSmall := fmt.Sprintf("isCIDR(w.subnet) && cidr(w.subnet).prefixLength() >= 17 && cidr(w.subnet).prefixLength() <= 30 && "+
		"[int(%s)].exists(highest, self.nodes.exists(k, n, has(n.networks) && w.name in n.networks && first[k] + %s - 1 > highest))", highest, count("n"))
	rules := apiextensionsv1.ValidationRules{
		e.refuse("the subnets of two networks overlap", fmt.Sprintf(
			"self.networks.transformList(i, w, isCIDR(w.subnet) && self.networks.exists(j, v, %[1]s), %[2]sw.subnet + ' overlaps the subnet of ' + %[3]s)",
			overlap, messageStart("networks", "w.name", ".subnet"), e.firstOrAll(fmt.Sprintf("self.networks.transformList(j, v, %s, v.name)", overlap), ", "))),
		let("first", firstIDs(), e.refuse("a subnet is too small for the NEM ids of its nodes", fmt.Sprintf(
			"self.networks.map(w, %s, %sw.subnet + ' is too small: a node has a NEM id above ' + %s + ', and an address is the base plus the NEM id')",
			tooSmall, messageStart("networks", "w.name", ".subnet"), highest))),
	}
	for _, end := range []string{"from", "to"} {
		rules = append(rules, withGroups(e.refuseEach(fmt.Sprintf("a link goes %s an unknown group", end), fmt.Sprintf(
			"self.networks.map(w, has(w.links), %s)",
			eachEntry(messageStart("networks", "w.name", ".links")+"'there is no group or node '", "w.links", "l",
				fmt.Sprintf("l.%[1]s != '*' && !%[2]s", end, isMember("l."+end)), fmt.Sprintf("l.%[1]s + ' to go %[1]s'", end))))))
	}
	rules = append(rules, withGroups(e.refuseEach("the base of a network is an unknown group", fmt.Sprintf(
		"self.networks.map(w, has(w.base), %s)",
		eachEntry(messageStart("networks", "w.name", ".base")+"'there is no group or node '", "w.base", "l", "!"+isMember("l"), "l")))))
	for _, client := range []string{"publisher", "subscriber"} {
		rules = append(rules, e.clientNetworkRule(client))
	}
	return append(rules, e.radioRules()...)
}

// radioRules are about names in radios and static routes.
func (e Extent) radioRules() apiextensionsv1.ValidationRules {
	routes := "has(w.routing) && has(w.routing.routes)"
	return apiextensionsv1.ValidationRules{
		withGroups(e.refuseEach("radios are those of an unknown group", fmt.Sprintf(
			"self.networks.map(w, has(w.radios), %s)",
			eachEntry(messageStart("networks", "w.name", ".radios")+"'there is no group or node in '", "w.radios", "l",
				"l.nodes.exists(o, !"+isMember("o")+")", "l.nodes.join(', ')")))),
		withNodes(e.refuseEach("a static route goes over an unknown node", fmt.Sprintf(
			"self.networks.map(w, %s, %s)", routes,
			eachEntry(messageStart("networks", "w.name", ".routing.routes")+"'there is no node '", "w.routing.routes", "l", "!"+isOneNode("l.via"), "l.via + ' to go via'")))),
		withNodes(e.refuseEach("a static route leads to an unknown node", fmt.Sprintf(
			"self.networks.map(w, %s, %s)", routes,
			eachEntry(messageStart("networks", "w.name", ".routing.routes")+"'there is no node '", "w.routing.routes", "l",
				"!l.to.contains('/') && !"+isOneNode("l.to"), "l.to + ' to go to; a subnet is written like 198.18.1.0/24'")))),
	}
}

// isOneNode reports, in CEL, whether a name is that of a node, in a rule with withNodes.
func isOneNode(name string) string {
	return withNameParts(name, "z in counts && counts[z] == 0 || b in counts && k > 0 && k <= counts[b]")
}

// clientNetworkRule is about the network of a publisher or subscriber whose protocol has no broker.
func (e Extent) clientNetworkRule(client string) apiextensionsv1.ValidationRule {
	every := func(node string) string {
		return fmt.Sprintf("self.nodes.all(n, !(%s) || has(n.networks) && %s)", runsApp("n", "p.name"), node)
	}
	known := fmt.Sprintf("self.networks.exists(w, w.name == p.%s.network)", client)
	problems := fmt.Sprintf("self.apps.map(p, has(p.%[1]s) && (has(p.%[1]s.network) ? !%[2]s || !%[3]s : p.%[1]s.protocol == 'mqtt-udp' && !%[4]s), "+
		"'spec.apps[' + p.name + '].%[1]s' + (!has(p.%[1]s.network) ? '.protocol: mqtt-udp needs a network, and a node that runs ' + p.name + ' has none' : "+
		"!%[2]s ? '.network: there is no network ' + p.%[1]s.network : '.network: a node that runs ' + p.name + ' is not attached to ' + p.%[1]s.network))",
		client, known, every("p."+client+".network in n.networks"), every("n.networks.size() > 0"))
	return e.refuse(fmt.Sprintf("a %s names a network that its nodes are not attached to", client), problems)
}

// countRunning is the number of nodes that run an app.
func countRunning(app string) string {
	return fmt.Sprintf("self.nodes.filter(m, %s).map(m, %s).sum()", runsApp("m", app), count("m"))
}

// nodeRuns reports, in CEL, whether the node of node/app runs that app.
func nodeRuns(ref string) string {
	return fmt.Sprintf("[%s].exists(y, %s)", appOf(ref), nodeExists(nodeOf(ref), runsApp("m", "y")+" && "))
}

// leadsToNotOne reports, in CEL, whether a reference of app p leads to no broker or to several. With node/app that node must run it;
// a bare name is the broker on the same node, else the only one.
func leadsToNotOne(ref string) string {
	return fmt.Sprintf("(%[1]s.contains('/') ? !%[2]s : [%[3]s].exists(t, t != 1 && (t == 0 || !self.nodes.all(n, !(%[4]s) || %[1]s in n.apps))))",
		ref, nodeRuns(ref), countRunning(ref), runsApp("n", "p.name"))
}

// isBroker reports, in CEL, whether a reference names a broker, or an image, which may be one.
func isBroker(ref string) string {
	return fmt.Sprintf("self.apps.exists(b, !(has(b.publisher) || has(b.subscriber) || has(b.mgen) || has(b.script) || has(b.mediator)) && b.name == %s)", appOf(ref))
}

// speaks reports, in CEL, whether the app of a reference serves a protocol; an image may serve any. It asks for the app's kind first, which
// costs the API server least.
func speaks(protocol, ref string) string {
	served := map[string]string{}
	var kinds []string
	for _, p := range slices.Backward(trafficconfig.Protocols) {
		for _, kind := range p.Brokers {
			is := fmt.Sprintf("%s == '%s'", protocol, p.Name)
			if served[kind] == "" {
				kinds, served[kind] = append(kinds, kind), is
			} else {
				served[kind] += " || " + is
			}
		}
	}
	speaks := "false"
	for _, kind := range slices.Backward(kinds) {
		speaks = fmt.Sprintf("has(b.%s) ? %s : %s", kind, served[kind], speaks)
	}
	return fmt.Sprintf("self.apps.exists(b, b.name == %s && (has(b.command) || (%s)))", appOf(ref), speaks)
}

// hasAny reports, in CEL, whether an app is of one of some kinds.
func hasAny(app string, kinds []string) string {
	fields := make([]string, len(kinds))
	for i, kind := range kinds {
		fields[i] = fmt.Sprintf("has(%s.%s)", app, kind)
	}
	return strings.Join(fields, " || ")
}

func (e Extent) brokerRules() (rules apiextensionsv1.ValidationRules) {
	for _, client := range []string{"publisher", "subscriber"} {
		to := "p." + client + ".to"
		given := fmt.Sprintf("has(p.%s) && has(%s)", client, to)
		rules = append(rules,
			e.refuse(fmt.Sprintf("a %s goes to something that is no broker", client), fmt.Sprintf(
				"self.apps.map(p, %[1]s && !%[2]s, %[3]s(self.apps.exists(b, b.name == %[4]s) ? 'app ' + %[4]s + ' is no broker' : 'there is no app ' + %[4]s))",
				given, isBroker(to), messageStart("apps", "p.name", "."+client+".to"), appOf(to))),
			e.refuse(fmt.Sprintf("a %s does not lead to one broker", client), fmt.Sprintf(
				"self.apps.map(p, %[1]s && %[2]s && %[3]s, %[4]s(%[5]s.contains('/') ? 'there is no node ' + %[6]s + ' that runs ' + %[7]s : %[8]s == 0 ? 'no node runs ' + %[5]s : "+
					"'several nodes run ' + %[5]s + ': write which, as in node/' + %[5]s))",
				given, isBroker(to), leadsToNotOne(to), messageStart("apps", "p.name", "."+client+".to"), to, nodeOf(to), appOf(to), countRunning(to))),
			e.refuse(fmt.Sprintf("a %s goes to a broker of another protocol", client), fmt.Sprintf(
				"self.apps.map(p, %[1]s && %[2]s && !%[3]s, %[4]s'app ' + %[5]s + ' does not speak ' + p.%[6]s.protocol)",
				given, isBroker(to), speaks("p."+client+".protocol", to), messageStart("apps", "p.name", "."+client+".to"), appOf(to), client)))
	}
	return rules
}

func (e Extent) bridgeRules() apiextensionsv1.ValidationRules {
	bridges := "has(p.mosquitto) && has(p.mosquitto.bridges)"
	lost := fmt.Sprintf("(r.to.contains('/') ? !%s : %s != 1)", nodeRuns("r.to"), countRunning("r.to"))
	mutual := fmt.Sprintf("has(q.mosquitto) && has(q.mosquitto.bridges) && p.mosquitto.bridges.exists(r, %[1]s == q.name) && q.mosquitto.bridges.exists(r, %[1]s == p.name)", appOf("r.to"))
	return apiextensionsv1.ValidationRules{
		e.refuseEach("a bridge goes to something that is no broker", fmt.Sprintf(
			"self.apps.map(p, %s, %s)",
			bridges, eachEntry(messageStart("apps", "p.name", ".mosquitto.bridges")+"'there is no broker named '", "p.mosquitto.bridges", "r",
				"!"+isBroker("r.to"), "r.to"))),
		e.refuseEach("a bridge does not lead to one broker", fmt.Sprintf(
			"self.apps.map(p, %s, %s)",
			bridges, eachEntry(messageStart("apps", "p.name", ".mosquitto.bridges")+"'which node? One that runs '", "p.mosquitto.bridges", "r",
				isBroker("r.to")+" && "+lost, "r.to + ' must be named, as in node/app'"))),
		e.refuse("two brokers bridge to each other", fmt.Sprintf(
			"self.apps.transformList(i, p, %s && self.apps.exists(j, q, j < i && %s), %s'another broker bridges to ' + p.name + ' too, so messages would go round for ever: keep one of the two bridges')",
			bridges, mutual, messageStart("apps", "p.name", ".mosquitto.bridges"))),
	}
}

// durationPattern of the marker of v1alpha1.Duration: rules about times ignore values that are no duration, which are refused already.
const durationPattern = `'^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$'`

func (e Extent) timelineRules() apiextensionsv1.ValidationRules {
	// A start at the end would follow the stop of publishers, and nothing would stop what it starts.
	late := fmt.Sprintf("self.timeline.map(e, has(self.duration) && self.duration.matches(%[1]s) && e.at.matches(%[1]s) && (has(e.start) ? duration(e.at) >= duration(self.duration) : duration(e.at) > duration(self.duration)), "+
		"%[2]se.at + ' is after the end of the experiment, or starts an app at its end: its duration is ' + self.duration)", durationPattern, messageStart("timeline", "e.at", ".at"))
	lateOver := fmt.Sprintf("self.timeline.map(e, has(self.duration) && has(e.over) && self.duration.matches(%[1]s) && e.at.matches(%[1]s) && e.over.matches(%[1]s) && "+
		"duration(e.at) <= duration(self.duration) && duration(e.at) + duration(e.over) > duration(self.duration), "+
		"%[2]se.over + ' from ' + e.at + ' on ends after the experiment: its duration is ' + self.duration)", durationPattern, messageStart("timeline", "e.at", ".over"))
	rules := apiextensionsv1.ValidationRules{e.refuse("the timeline goes on after the duration", late), e.refuse("the timeline spreads starts or stops beyond the duration", lateOver)}
	for _, verb := range []string{"start", "stop"} {
		ok := fmt.Sprintf("(x.contains('/') ? [%s].exists(y, [' ' + y + ' '].exists(app, %s)) : self.nodes.exists(m, %s))", appOf("x"),
			withNameParts(nodeOf("x"), "z in counts && counts[z] == 0 && appsOf[z].contains(app) || b in counts && k > 0 && k <= counts[b] && appsOf[b].contains(app) || "+
				"self.nodes.exists(m, "+runsApp("m", "y")+" && "+group("m")+" == z)"), runsApp("m", "x"))
		rules = append(rules, withNodes(e.refuseEach(fmt.Sprintf("the timeline would %s what no node runs", verb), fmt.Sprintf(
			"self.timeline.map(e, has(e.%[1]s), %[2]s)",
			verb, eachEntry(messageStart("timeline", "e.at", "."+verb)+"'no node runs '", "e."+verb, "x", "!"+ok, "x + ': want app, node/app or group/app'")))))
	}
	rules = append(rules, e.setRules()...)
	for i := range rules {
		rules[i].Rule = "!has(self.timeline) || " + rules[i].Rule // "||" is associative, so that no brackets are needed
	}
	return rules
}

// setRules are about changes of networks in the timeline.
func (e Extent) setRules() apiextensionsv1.ValidationRules {
	rules := apiextensionsv1.ValidationRules{let("known", "self.networks.map(w, w.name)", e.refuseEach("the timeline changes an unknown network", fmt.Sprintf(
		"self.timeline.map(e, has(e.set), %s)",
		eachEntry(messageStart("timeline", "e.at", ".set")+"'there is no network '", "e.set", "c", "!(c.network in known)", "c.network"))))}
	for _, end := range []string{"from", "to"} {
		rules = append(rules, withGroups(e.refuseEach(fmt.Sprintf("the timeline changes a link %s an unknown group", end), fmt.Sprintf(
			"self.timeline.map(e, has(e.set), %s)",
			eachEntry(messageStart("timeline", "e.at", ".set")+"'there is no group or node '", "e.set", "c",
				fmt.Sprintf("has(c.%[1]s) && c.%[1]s != '*' && !%[2]s", end, isMember("c."+end)), fmt.Sprintf("c.%[1]s + ' to go %[1]s'", end))))))
	}
	return rules
}

// captureRules are about collect.captures: network, network/node or network/group.
func (e Extent) captureRules() apiextensionsv1.ValidationRules {
	const network, member = "c.substring(0, (c + '/').indexOf('/'))", "c.substring(c.indexOf('/') + 1)"
	rules := apiextensionsv1.ValidationRules{
		let("known", "self.networks.map(w, w.name)", e.refuse("an unknown network would be captured", fmt.Sprintf(
			"self.collect.captures.map(c, !(%[1]s in known), 'spec.collect.captures: there is no network ' + %[1]s)", network))),
		withGroups(e.refuse("an unknown group would be captured", fmt.Sprintf(
			"self.collect.captures.map(c, c.contains('/') && !%s, 'spec.collect.captures: there is no group or node ' + %s)", isMember(member), member))),
	}
	for i := range rules {
		rules[i].Rule = "!has(self.collect) || !has(self.collect.captures) || " + rules[i].Rule
	}
	return rules
}
