package main

import "fmt"

// clusterStart is when clients of brokers in Erlang start, after T0. Those take 10 to 20 s to start, on a busy host more than a minute, and longer to join over a slow link.
const clusterStart = 120

// coalition is one run of E3.
type coalition struct {
	form
	link
	// Hub is the broker of the nation in the middle.
	Hub string
}

func coalitions() (all []coalition) {
	for _, hub := range []string{"mosquitto", "vernemq"} {
		for _, l := range []link{"internet", "satcom"} {
			all = append(all, coalition{form{}, l, hub}, coalition{form{true}, l, hub})
		}
	}
	return all
}

// Full returns the name of the full form's file.
func (c coalition) Full() string {
	if c.Hub == "mosquitto" {
		return string(c.link)
	}
	return c.Hub + "-" + string(c.link)
}

func (c coalition) path() string { return c.folder("e3") + c.Full() + ".yaml" }

// Name returns the experiment's name.
func (c coalition) Name() string { return "e3-" + c.Full() + c.suffix() }

// Words describes the messaging.
func (c coalition) Words() string {
	if c.Hub == "mosquitto" {
		return "one Mosquitto per nation; Norway's is the hub, in VerneMQ's place"
	}
	return "Norway's VerneMQ is the hub; Mosquitto in Portugal and the USA"
}

// Broker returns Norway's broker as written in the file.
func (c coalition) Broker() string { return c.Hub + ": {}" }

// internetRate and internetDelay are those of a broadband path to a data centre on the same continent, one way.
const internetRate, internetDelay = "100Mbit", "20ms"

// Path returns the path between the machine and the cloud as written in the file.
func (c coalition) Path() string {
	if c.link == "internet" {
		return fmt.Sprintf("link: {rate: %s, delay: %s}      # one way; not published: set your own", internetRate, internetDelay)
	}
	return "waveform: " + string(c.link)
}

// PathWords describes it.
func (c coalition) PathWords() string {
	if c.link == "internet" {
		return "the Internet (100 Mbit/s, 20 ms)"
	}
	return c.LinkWords()
}

// Publishing returns the publishing time in seconds.
func (c coalition) Publishing() int { return choose(c.Short, 40, 1800) }

// Messages returns a unit's messages: one every 2 s.
func (c coalition) Messages() int { return c.Publishing() / 2 }

// Lead returns the lead in seconds.
func (c coalition) Lead() int { return choose(c.Short, 5, 10) }

// Start returns the start of units, in seconds after T0.
func (c coalition) Start() int { return choose(c.Hub == "mosquitto", 5, clusterStart) }

// Stop returns the stop of units, in seconds after T0.
func (c coalition) Stop() int { return c.Start() + c.Lead() + c.Publishing() }

// Duration returns the duration in seconds.
func (c coalition) Duration() int { return c.Stop() + 5 }

// Tracks returns the ways of the units.
func (c coalition) Tracks() tracks { return tracks{"e3", 3, c.Duration(), 3} }

// Drain returns the run's drain time.
func (c coalition) Drain() string {
	return choose(!c.Short && c.link == "satcom", "{max: 60s, quietFor: 15s}", "{max: 30s, quietFor: 5s}")
}

// nation is one run of E4.
type nation struct {
	form
	link
	Setting   int
	Messaging string
	// Period returns the period in seconds.
	Period int
}

// nations are E4's 12 and 18 runs, and those of a RabbitMQ cluster beside them. Selected runs of setting 1 have short forms.
func nations() (all []nation) {
	for _, l := range []link{"baseline", "tactical-1", "tactical-2"} {
		for _, period := range []int{2, 10} {
			for _, messaging := range []string{"mosquitto", "mqtt-udp", "vernemq", "rabbitmq"} {
				all = append(all, nation{form{}, l, 2, messaging, period})
				if messaging != "mqtt-udp" {
					all = append(all, nation{form{}, l, 1, messaging, period})
				}
				if worthShort(messaging, l, period) {
					all = append(all, nation{form{true}, l, 2, messaging, period})
				}
				if messaging == "mosquitto" && (l == "tactical-1" || l == "baseline" && period == 2) {
					all = append(all, nation{form{true}, l, 1, messaging, period})
				}
			}
		}
	}
	return all
}

// worthShort selects everything that starts at once, and of clusters one over each kind of link.
func worthShort(messaging string, l link, period int) bool {
	if messaging == "mosquitto" || messaging == "mqtt-udp" {
		return true
	}
	return l == "baseline" && period == 2 || l == "tactical-1" && period == 10
}

func (n nation) cluster() bool { return n.Messaging == "vernemq" || n.Messaging == "rabbitmq" }

// Full returns the name of the full form's file.
func (n nation) Full() string {
	return fmt.Sprintf("setting%d-%s-%s-%ds", n.Setting, n.Messaging, n.link, n.Period)
}

func (n nation) path() string { return n.folder("e4") + n.Full() + ".yaml" }

// Name returns the experiment's name.
func (n nation) Name() string {
	return fmt.Sprintf("e4-s%d-%s-%s-%ds%s", n.Setting, n.Messaging, n.link, n.Period, n.suffix())
}

// Words describes the messaging.
func (n nation) Words() string {
	switch n.Messaging {
	case "mosquitto":
		return choose(n.Setting == 1, "one Mosquitto per nation, Portugal's bridged to Norway's", "one Mosquitto per nation, bridged through Norway's")
	case "mqtt-udp":
		return "MQTT/UDP: no broker, every message is one UDP broadcast"
	case "vernemq":
		return "one VerneMQ per nation, all in one cluster (a mesh)"
	}
	return "one RabbitMQ per nation, by MQTT, all in one cluster (a mesh)"
}

// Link returns the waveform's name.
func (n nation) Link() string { return string(n.link) }

// Publishing returns the publishing time in seconds.
func (n nation) Publishing() int { return choose(n.Short, 60, 1200) }

// Messages returns a unit's messages.
func (n nation) Messages() int { return n.Publishing() / n.Period }

// Nodes returns the nations.
func (n nation) Nodes() []string {
	return choose(n.Setting == 1, []string{"nor", "prt"}, []string{"deu", "nor", "prt", "usa"})
}

// AppsOf returns a nation's apps.
func (n nation) AppsOf(node string) string {
	switch {
	case n.Messaging == "mqtt-udp":
		return "units"
	case n.Messaging == "mosquitto" && node == "nor":
		return "hub, units-hub"
	}
	return "broker, units"
}

// Tracks returns the ways of the units.
func (n nation) Tracks() tracks { return tracks{"e4", 4, n.Duration(), 4} }

// Platforms returns those that the app units reports: 8 for each nation, in the order of their names, without those of the hub's own app.
func (n nation) Platforms() string {
	switch {
	case n.Messaging == "mosquitto":
		return choose(n.Setting == 1, "117-124", "101-108,117-132")
	case n.Setting == 1:
		return "109-124"
	}
	return "101-132"
}

// Units returns the publishing apps.
func (n nation) Units() string {
	return choose(n.Messaging == "mosquitto", "units-hub, units", "units")
}

// Start returns the start of units, in seconds after T0.
func (n nation) Start() int { return choose(n.cluster(), clusterStart, 5) }

// Stop returns the stop of units, in seconds after T0, 10 s of lead included.
func (n nation) Stop() int { return n.Start() + 10 + n.Publishing() }

// Duration returns the duration in seconds.
func (n nation) Duration() int { return n.Stop() + 5 }

// Drain returns the run's drain time.
func (n nation) Drain() string {
	switch {
	case n.link == "baseline":
		return "{max: 30s, quietFor: 5s}"
	case n.Short:
		return "{max: 60s, quietFor: 20s}"
	}
	return "{max: 300s, quietFor: 120s}"
}
