package render

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/streams"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// bridgeWarnings are about bridges that carry messages at a lower QoS than their publishers and subscribers have.
func bridgeWarnings(in Input) (warnings field.ErrorList) {
	bridged := func(app v1alpha1.App) bool { return app.Mosquitto != nil && len(app.Mosquitto.Bridges) > 0 }
	if !slices.ContainsFunc(in.Experiment.Spec.Apps, bridged) {
		return nil
	}
	sites := MakeSites(in)
	for i, app := range in.Experiment.Spec.Apps {
		if !bridged(app) {
			continue
		}
		for j, bridge := range app.Mosquitto.Bridges {
			for qos := v1alpha1.QoS(2); qos > 0; qos-- {
				if in.needsBridge(sites, app, j, qos) {
					path := field.NewPath("spec", "apps").Index(i).Child("mosquitto", "bridges").Index(j).Child("topics")
					warnings = append(warnings, field.Invalid(path, bridge.To, fmt.Sprintf(
						"publishers and subscribers have QoS %d, and the bridge carries their messages at less: it may lose them. Want topics with qos: %[1]d, and session: Persistent to keep them while the bridge is away", qos)))
					break
				}
			}
		}
	}
	return warnings
}

// needsBridge reports whether clients with a QoS, or above, exchange messages over topics of a bridge with a lower one.
func (in Input) needsBridge(sites Sites, app v1alpha1.App, bridge int, qos v1alpha1.QoS) bool {
	lower := func(t v1alpha1.BridgeTopic) bool { return t.QoS < qos }
	topics := app.Mosquitto.Bridges[bridge].AllTopics()
	if !slices.ContainsFunc(topics, lower) {
		return false
	}
	clients := clientsWithQoS(in, sites, qos)
	with := streams.Table(clients, plannedPassages(in, sites))
	without := *app.Mosquitto.DeepCopy()
	if kept := slices.DeleteFunc(slices.Clone(topics), lower); len(kept) > 0 {
		without.Bridges[bridge].Topics = kept
	} else {
		without.Bridges = slices.Delete(without.Bridges, bridge, bridge+1)
	}
	changed := Sites{}
	for node, all := range sites {
		changed[node] = slices.Clone(all)
		for i := range all {
			if all[i].App.Name == app.Name {
				changed[node][i].App.Mosquitto = &without
			}
		}
	}
	return !reflect.DeepEqual(with, streams.Table(clients, plannedPassages(in, changed)))
}

// clientsWithQoS send and receive with a QoS or above, in the order of their nodes. One with failover is there once for each broker.
func clientsWithQoS(in Input, sites Sites, qos v1alpha1.QoS) (found []streams.Client) {
	for _, node := range in.Topology.Nodes {
		for _, site := range sites[node.Name] {
			sends, receives := qosOf(site)
			if max(sends, receives) < int(qos) {
				continue
			}
			_, clients := plannedApp(site)
			for _, c := range clients {
				if sends < int(qos) {
					c.Topics = nil
				}
				if receives < int(qos) {
					c.Filters = nil
				}
				found = append(found, atEachBroker(c)...)
			}
		}
	}
	return found
}

func atEachBroker(c streams.Client) (all []streams.Client) {
	for _, broker := range c.Brokers {
		one := c
		one.Name, one.Brokers = c.Name+" "+broker, []string{broker}
		all = append(all, one)
	}
	return all
}

// qosOf an app's messages that it sends and receives; 0 for other apps.
func qosOf(site apps.Site) (sends, receives int) {
	if s := site.App.Script; s != nil {
		return int(s.QoS), int(s.QoS)
	}
	if p := site.App.Publisher; p != nil {
		sends = int(p.QoS)
	}
	if s := site.App.Subscriber; s != nil {
		receives = int(s.QoS)
	}
	return sends, receives
}
