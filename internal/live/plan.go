package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
)

// instance is one process of an app, or a further name under which one sends.
type instance struct {
	name, node, group, app string
	// log is its message log, below the run: instances that share it are one process.
	log string
	// topic of a publisher whose log has no topics.
	topic string
	// brokerNode runs its broker; its own node without one.
	brokerNode string
	// brokers that it may use, as node/app; null if they are not known.
	brokers []string
}

// brokersAreOn reports whether all its brokers are on a node; with several (failover) it uses one at a time.
func (i *instance) brokersAreOn(node string) bool {
	elsewhere := func(broker string) bool { return !strings.HasPrefix(broker, node+"/") }
	return i.brokerNode == node && (len(i.brokers) < 2 || !slices.ContainsFunc(i.brokers, elsewhere))
}

// instancesOf returns every planned instance, in the plan's order.
func instancesOf(plan *runapi.Plan) (all []instance) {
	for _, node := range plan.Nodes {
		for _, app := range node.Apps {
			for i, name := range slices.Concat(app.Instances, app.Senders) {
				number := i + 1
				if i >= len(app.Instances) {
					number = 1 // senders write into the first instance's log
				}
				all = append(all, instance{name: name, node: node.Name, group: node.Group, app: app.Name, brokerNode: cmp.Or(app.BrokerNode, node.Name), brokers: app.Brokers,
					log: fmt.Sprintf("logs/%s/%s/messages-%d.jsonl", node.Name, app.Name, number)})
			}
		}
	}
	return all
}

// subscriber of a stream, with the topic under which it receives.
type subscriber struct {
	instance      int
	receivedTopic string
	// radio deliveries go to another node, local ones never leave the node, cross ones go to another group.
	radio, local, cross bool
	// lateNodes take part in the deliveries, of so many (lateKnown) of the tally's.
	lateNodes []string
	lateKnown int
}

// indexRows finds the rows of each publisher in the plan's table of streams, and the topic of those that send to one only.
func (t *Tally) indexRows() {
	if t.plan.Streams == nil {
		return
	}
	t.rows, t.audiences = make([][]*runapi.PlannedStream, len(t.instances)), t.plan.Streams.Audiences
	for i := range t.plan.Streams.Rows {
		row := &t.plan.Streams.Rows[i]
		for _, name := range row.Publishers {
			if publisher, known := t.byName[name]; known {
				t.rows[publisher] = append(t.rows[publisher], row)
			}
		}
	}
	for i, rows := range t.rows {
		if len(rows) == 1 {
			t.instances[i].topic = rows[0].Topic
		}
	}
}

// subscribersOf a publisher's topic, by the plan's table of streams.
func (t *Tally) subscribersOf(publisher int, topic string) (found []subscriber) {
	if t.rows == nil || topic == "" { // nobody expects a message without a topic
		return nil
	}
	p := &t.instances[publisher]
	for _, row := range t.rows[publisher] {
		if row.Topic != topic && !mqtttopic.MatchAny(row.Filters, topic) {
			continue
		}
		for _, heard := range row.Heard {
			for _, name := range t.audiences[heard.Audience] {
				i := t.byName[name]
				s := &t.instances[i]
				if s.log == p.log {
					continue
				}
				local := p.node == s.node && p.brokersAreOn(p.node) && s.brokersAreOn(p.node)
				found = append(found, subscriber{instance: i, receivedTopic: cmp.Or(heard.Topic, topic), radio: p.node != s.node, local: local, cross: p.group != s.group})
			}
		}
	}
	slices.SortFunc(found, func(a, b subscriber) int { return cmp.Compare(a.instance, b.instance) })
	return found
}
