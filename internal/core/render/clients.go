package render

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/payload/bytes"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/traffic"
)

// CheckClients finds what clients would refuse. On one node: topics and filters with names in their placeholders, and sizes too small
// for message ids. On all: times that are too long, and a QoS that the protocol of a mediator's leg lacks. Each field has its first
// error. The references of the spec must be valid.
func CheckClients(in Input) (errs field.ErrorList) {
	paths := map[string]*field.Path{}
	for i, app := range in.Experiment.Spec.Apps {
		paths[app.Name] = field.NewPath("spec", "apps").Index(i)
	}
	found := map[string]bool{}
	sites := MakeSites(in)
	for _, node := range in.Topology.Nodes {
		for _, site := range sites[node.Name] {
			for _, err := range checkClient(site, paths[site.App.Name]) {
				if !found[err.Field] {
					found[err.Field] = true
					errs = append(errs, err)
				}
			}
		}
	}
	return errs
}

func checkClient(site apps.Site, path *field.Path) (errs field.ErrorList) {
	topic := func(at *field.Path, protocol v1alpha1.Protocol, topic string) {
		if err := trafficconfig.ProtocolOf(protocol).CheckTopic(topic); err != nil {
			errs = append(errs, field.Invalid(at, topic, fmt.Sprintf("on node %s it %v", site.Node, err)))
		}
	}
	subscription := func(at *field.Path, protocol v1alpha1.Protocol, filter string) {
		topic(at, protocol, filter)
		errs = append(errs, checkShared(filter, at)...)
	}
	if p := site.App.Publisher; p != nil {
		errs = checkTimes(p, path.Child("publisher"))
	}
	for i := range site.Instances {
		if p := site.App.Publisher; p != nil {
			topic(path.Child("publisher", "topic"), p.Protocol, traffic.Topic(site, i))
			if err := checkIDs(p.Payload, site.Senders[i].Entity); err != nil {
				errs = append(errs, field.Invalid(path.Child("publisher", "payload"), p.Payload, err.Error()))
			}
		}
		if s := site.App.Subscriber; s != nil {
			for j, filter := range traffic.Subscriptions(site.App, site.Node, i) {
				subscription(path.Child("subscriber", "topics").Index(j), s.Protocol, filter)
			}
		}
	}
	for i, filter := range site.App.Subscribes {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			errs = append(errs, field.Invalid(path.Child("subscribes").Index(i), filter, err.Error()))
		}
		errs = append(errs, checkShared(filter, path.Child("subscribes").Index(i))...)
	}
	if m := site.App.Mediator; m != nil {
		for i, leg := range m.Legs {
			at := path.Child("mediator", "legs").Index(i)
			if most := trafficconfig.ProtocolOf(leg.Protocol).MaxQoS; int(leg.QoS) > most {
				errs = append(errs, field.Invalid(at.Child("qos"), leg.QoS, fmt.Sprintf("is above what %s has: want %d at most", leg.Protocol, most)))
			}
			for j, filter := range leg.Topics {
				subscription(at.Child("topics").Index(j), leg.Protocol, leg.Prefix+filter)
			}
		}
	}
	return errs
}

// checkShared refuses a filter of which a broker chooses the receiver, so that nobody knows who should receive.
func checkShared(filter string, path *field.Path) field.ErrorList {
	if !strings.HasPrefix(filter, "$share/") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, filter, "is a shared subscription, whose messages go to one of its clients each: results cannot say which. Want the filter without $share and its name")}
}

func checkTimes(p *v1alpha1.Publisher, path *field.Path) (errs field.ErrorList) {
	limit := func(at *field.Path, d v1alpha1.Duration) {
		if d.Std() > trafficconfig.LongestTime {
			errs = append(errs, field.Invalid(at, d, fmt.Sprintf("must be %s at most", wording.Time(trafficconfig.LongestTime))))
		}
	}
	limit(path.Child("period"), p.Period)
	limit(path.Child("lead"), p.Lead)
	if p.AdaptRate != nil {
		limit(path.Child("adaptRate", "maxPeriod"), p.AdaptRate.MaxPeriod)
	}
	return errs
}

// checkIDs returns an error if a payload is too small for an entity's message ids.
func checkIDs(payload, entity string) error {
	count, ok := strings.CutPrefix(payload, "bytes:")
	if !ok {
		return nil
	}
	size, err := strconv.Atoi(count)
	if err != nil {
		return nil // the API server refuses it
	}
	return bytes.Check(entity, size)
}
