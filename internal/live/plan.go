package live

import (
	"fmt"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// instance is one process of an app, or a further name under which one sends.
type instance struct {
	name, node, group, app string
	// log is its message log, below the run: instances that share it are one process.
	log string
	// topic of a publisher whose log has no topics.
	topic         string
	subscriptions []string
	// The protocols by which it sends and receives; empty if the plan does not say.
	publishes, subscribes string
	// The nodes of the brokers that it publishes to and receives from; its own node without a broker.
	publishBroker, subscribeBroker string
	brokers                        []string
}

// connection is what an app's spec says of a connection, for sending or for receiving.
type connection struct {
	protocol, to string
}

// instancesOf returns every planned instance, in the plan's order.
func instancesOf(plan *runapi.Plan) []instance {
	apps := map[string]*v1alpha1.App{}
	for i := range plan.Spec.Apps {
		apps[plan.Spec.Apps[i].Name] = &plan.Spec.Apps[i]
	}
	var all []instance
	for _, node := range plan.Nodes {
		for i := range node.Apps {
			app := &node.Apps[i]
			sends, hears := connectionsOf(apps[app.Name])
			one := instance{
				node: node.Name, group: node.Group, app: app.Name, publishes: sends.protocol, subscribes: hears.protocol,
				publishBroker: brokerNode(plan, node.Name, sends.to), subscribeBroker: brokerNode(plan, node.Name, hears.to), brokers: app.Brokers,
			}
			all = append(all, one.instancesOfApp(app)...)
		}
	}
	return all
}

// instancesOfApp returns an app's instances, and the names under which the first one sends.
func (i instance) instancesOfApp(app *runapi.PlannedApp) []instance {
	var all []instance
	for number, name := range app.Instances {
		one := i
		one.name, one.log = name, logOf(i.node, i.app, number+1)
		if one.subscriptions = app.Subscriptions; number < len(app.InstanceSubscriptions) {
			one.subscriptions = app.InstanceSubscriptions[number]
		}
		if number < len(app.PublishTopics) {
			one.topic = app.PublishTopics[number]
		}
		all = append(all, one)
	}
	for _, name := range app.Senders {
		one := i
		one.name, one.log = name, logOf(i.node, i.app, 1)
		all = append(all, one)
	}
	return all
}

func logOf(node, app string, number int) string {
	return fmt.Sprintf("logs/%s/%s/messages-%d.jsonl", node, app, number)
}

func connectionsOf(app *v1alpha1.App) (sends, hears connection) {
	if app == nil {
		return sends, hears
	}
	common := connection{protocol: app.Protocol}
	switch {
	case app.Script != nil:
		common = connection{string(app.Script.Protocol), app.Script.To}
	case app.MGEN != nil:
		common = connection{protocol: "mgen"}
	}
	sends, hears = common, common
	if p := app.Publisher; p != nil {
		sends = connection{string(p.Protocol), p.To}
	}
	if s := app.Subscriber; s != nil {
		hears = connection{string(s.Protocol), s.To}
	}
	return sends, hears
}

// brokerNode resolves a client's broker as the operator does: node/app, else the app on the same node, else the only one.
func brokerNode(plan *runapi.Plan, node, to string) string {
	slash := strings.LastIndexByte(to, '/')
	if slash > 0 {
		return to[:slash]
	}
	first := node
	for _, n := range plan.Nodes {
		if !slices.ContainsFunc(n.Apps, func(a runapi.PlannedApp) bool { return a.Name == to }) {
			continue
		}
		if n.Name == node {
			return node
		}
		if first == node {
			first = n.Name
		}
	}
	return first
}

// matches reports whether an MQTT topic filter with + and # covers a topic (MQTT 5, section 4.7).
func matches(filter, topic string) bool {
	want, have := strings.Split(filter, "/"), strings.Split(topic, "/")
	if strings.HasPrefix(topic, "$") && (want[0] == "+" || want[0] == "#") {
		return false // section 4.7.2
	}
	for level, part := range want {
		if part == "#" {
			return level == len(want)-1
		}
		if level >= len(have) || part != "+" && part != have[level] {
			return false
		}
	}
	return len(have) == len(want)
}

func covers(filters []string, topic string) bool {
	return slices.ContainsFunc(filters, func(filter string) bool { return matches(filter, topic) })
}

// maxTopicNames of one message at one broker: a circle of bridges that add prefixes would make ever new ones.
const maxTopicNames = 16

// topicsAtBrokers finds the brokers that a message reaches, and its topics there.
func topicsAtBrokers(passages []runapi.PlannedPassage, brokers []string, topic string) map[string][]string {
	type place struct{ broker, name string }
	names := map[string][]string{}
	var ahead []place
	for _, broker := range brokers {
		ahead = append(ahead, place{broker, topic})
	}
	for len(ahead) > 0 {
		at := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		if here := names[at.broker]; slices.Contains(here, at.name) || len(here) == maxTopicNames {
			continue
		}
		names[at.broker] = append(names[at.broker], at.name)
		for _, passage := range passages {
			bare, passes := strings.CutPrefix(at.name, passage.StripPrefix)
			if passage.From == at.broker && passes && covers(passage.Filters, bare) {
				ahead = append(ahead, place{passage.To, passage.AddPrefix + bare})
			}
		}
	}
	return names
}

// subscriber of a stream, with the topic under which it receives.
type subscriber struct {
	instance      int
	receivedTopic string
	// radio deliveries go to another node, local ones never leave the node, cross ones go to another group.
	radio, local, cross bool
}

// subscribersOf a publisher's topic, by the rule of the analysis (expected.py).
func subscribersOf(all []instance, passages []runapi.PlannedPassage, publisher int, topic string) []subscriber {
	p := &all[publisher]
	reached := topicsAtBrokers(passages, p.brokers, topic)
	var found []subscriber
	for i := range all {
		s := &all[i]
		if len(s.subscriptions) == 0 || s.log == p.log {
			continue
		}
		heard, hears := receivedTopic(p, s, topic, reached)
		if !hears {
			continue
		}
		local := p.node == s.node && p.publishBroker == p.node && s.subscribeBroker == s.node
		found = append(found, subscriber{instance: i, receivedTopic: heard, radio: p.node != s.node, local: local, cross: p.group != s.group})
	}
	return found
}

// receivedTopic returns the topic under which a subscriber receives a publisher's messages.
func receivedTopic(p, s *instance, topic string, reached map[string][]string) (heard string, hears bool) {
	if len(p.brokers) == 0 || len(s.brokers) == 0 { // unknown connections: compare the protocols
		same := p.publishes == "" || s.subscribes == "" || p.publishes == s.subscribes
		return topic, same && covers(s.subscriptions, topic)
	}
	for _, broker := range s.brokers {
		for _, name := range reached[broker] {
			if covers(s.subscriptions, name) {
				return name, true
			}
		}
	}
	return "", false
}
