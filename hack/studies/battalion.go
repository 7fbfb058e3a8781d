package main

import (
	"fmt"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/orderofbattle"
	"vignette.dev/vignette/internal/scenario/synthetic"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// battalion is the experiment with all of Anglova's battalion, or with some of its units.
type battalion struct{ form }

// part is some nodes of the battalion that have the same networks and apps.
type part struct {
	name, group  string
	first, count int
	// apps run beside the publisher.
	apps string
	// to is the broker of its publisher.
	to string
	// inShort is the number of its nodes in the short form.
	inShort int
}

func (b battalion) path() string {
	return choose(b.Short, "battalion/short/bft-49.yaml", "battalion/bft-243.yaml")
}

// Name returns the experiment's name.
func (b battalion) Name() string { return choose(b.Short, "battalion-49-short", "battalion-243") }

// Movement returns the scenario's name.
func (b battalion) Movement() string { return "anglova-like-battalion" + b.suffix() }

// Lasts returns the scenario's duration.
func (b battalion) Lasts() string { return choose(b.Short, "5m", "20m") }

// Units returns the order of battle as written in the file.
func (b battalion) Units() (all []string) {
	for _, u := range synthetic.OrderOfBattle() {
		all = append(all, unitText(u))
	}
	return all
}

func unitText(u v1alpha1.Unit) string {
	text := fmt.Sprintf("{name: %s, ", u.Name)
	if u.Within != "" {
		text += fmt.Sprintf("within: %s, ", u.Within)
	}
	text += fmt.Sprintf("commander: %d", u.Commander)
	if u.Platforms != "" {
		text += fmt.Sprintf(`, platforms: "%s"`, u.Platforms)
	}
	if u.Network != "" {
		text += ", network: " + u.Network
	}
	return text + "}"
}

func (b battalion) parts() (all []part) {
	company := func(number, first, count, inShort int, gateway bool) {
		name := fmt.Sprintf("co%d", number)
		all = append(all, part{name + "-hq", name, first, 1, "broker, company", name + "-hq/broker", min(inShort, 1)})
		if gateway {
			all = append(all, part{name + "-gw", name, first + 1, 1, "", name + "-hq/broker", min(inShort, 1)})
			first, count = first+1, count-1
		}
		all = append(all, part{name, name, first + 1, count - 1, "", name + "-hq/broker", min(inShort, count-1)})
	}
	company(1, 1, 24, 0, false)
	company(2, 25, 24, 0, false)
	company(3, 49, 24, 24, true)
	company(4, 73, 24, 0, true)
	all = append(all, part{"bn-hq", "co5", 97, 1, "hub, picture", "hub", 1}, part{"co5", "co5", 98, 1, "", "hub", 1}, part{"staff", "co5", 99, 20, "", "hub", 8})
	company(6, 119, 39, 0, false)
	all = append(all, part{"uav-hq", "uav", 158, 1, "", "hub", 1}, part{"uav", "uav", 159, 5, "", "hub", 5}, part{"support", "co6", 164, 8, "", "co6-hq/broker", 0},
		part{"foot3", "foot3", 172, 36, "", "co3-hq/broker", 9}, part{"foot4", "foot4", 208, 36, "", "co4-hq/broker", 0})
	if b.Short {
		for i := range all {
			all[i].count = all[i].inShort
		}
	}
	return slices.DeleteFunc(all, func(p part) bool { return p.count == 0 })
}

// Count returns the number of nodes.
func (b battalion) Count() (count int) {
	for _, p := range b.parts() {
		count += p.count
	}
	return count
}

var battalionOrder = func() *orderofbattle.Order {
	order, err := orderofbattle.Read(synthetic.OrderOfBattle())
	if err != nil {
		panic(err) // a test reads it
	}
	return order
}()

// networks returns those of a part, the own company's first.
func (p part) networks() []string {
	names := battalionOrder.NetworksOf(p.first)
	slices.Reverse(names)
	return names
}

// Networks returns those that some node is on, as written in the file.
func (b battalion) Networks() (all []string) {
	for i, network := range battalionOrder.Networks {
		used := slices.ContainsFunc(b.parts(), func(p part) bool { return slices.Contains(p.networks(), network.Name) })
		if !used {
			continue
		}
		hello, tc := 2, 8
		if network.Name == "bn" {
			hello, tc = 4, 16
		}
		all = append(all, fmt.Sprintf("{name: %s, waveform: group-net, subnet: 198.18.%d.0/24, routing: {protocol: olsrv2, hello: %ds, helloValidity: %ds, tc: %ds, tcValidity: %ds}}",
			network.Name, 100+i, hello, 10*hello, tc, 160))
	}
	return all
}

// publisher returns the name of the app that publishes to a broker.
func (p part) publisher() string {
	return "bft-" + strings.TrimSuffix(strings.TrimSuffix(p.to, "/broker"), "-hq")
}

// publishers returns the names of all publishers and their brokers.
func (b battalion) publishers() (names, brokers []string) {
	for _, p := range b.parts() {
		if !slices.Contains(names, p.publisher()) {
			names, brokers = append(names, p.publisher()), append(brokers, p.to)
		}
	}
	return names, brokers
}

// Publishers returns the apps as written in the file.
func (b battalion) Publishers() (all []string) {
	names, brokers := b.publishers()
	for i, name := range names {
		all = append(all, fmt.Sprintf("{name: %s, publisher: {protocol: mqtt, to: %s, payload: geojson, period: 10s, lead: 30s}, resources: {requests: {cpu: 2m, memory: 12Mi}}}", name, brokers[i]))
	}
	return all
}

// Started returns the names of all publishers.
func (b battalion) Started() string {
	names, _ := b.publishers()
	return strings.Join(names, ", ")
}

// Nodes returns the nodes as written in the file. Their NEM ids are the numbers of their platforms.
func (b battalion) Nodes() (all []string) {
	for _, p := range b.parts() {
		apps := p.publisher()
		if p.apps != "" {
			apps = p.apps + ", " + apps
		}
		where := fmt.Sprintf(`platform: "%d"`, p.first)
		if p.count > 1 {
			where = fmt.Sprintf("count: %d, platforms: %d-%d", p.count, p.first, p.first+p.count-1)
		}
		all = append(all, fmt.Sprintf("{name: %s, group: %s, nem: %d, %s, networks: [%s], apps: [%s]}", p.name, p.group, p.first, where, strings.Join(p.networks(), ", "), apps))
	}
	return all
}

// Stop returns when publishers stop, in seconds after T0.
func (b battalion) Stop() int { return choose(b.Short, 160, 970) }

// Duration returns the duration in seconds.
func (b battalion) Duration() int { return b.Stop() + 25 }
