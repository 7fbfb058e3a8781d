package main

import (
	"fmt"
	"strings"
)

// proxied is a way in which E5's requests cross the link.
type proxied struct {
	key string
	// Words describes it.
	Words string
	// Protocol and Compression are the proxy pair's; without a protocol there is none.
	Protocol, Compression string
}

func proxiedWays() []proxied {
	all := []proxied{{key: "direct", Words: "No proxies: client and service speak to each other over the link"}}
	for _, protocol := range []struct{ name, words string }{{"http", "HTTP"}, {"coap", "CoAP"}, {"amqp", "AMQP, through a RabbitMQ on the service's node"}} {
		all = append(all,
			proxied{protocol.name, "A proxy pair, by " + protocol.words, protocol.name, ""},
			proxied{protocol.name + "-gzip", "A proxy pair, by " + protocol.words + ", compressed by gzip", protocol.name, "gzip"})
	}
	return all
}

// serviceNetworks are E5's, each named by its waveform. That of the single files is the first.
var serviceNetworks = []link{"cnr-1", "satcom", "line-of-sight", "wifi-1", "wifi-2", "edge"}

// service is one run of E5.
type service struct {
	form
	link
	proxied
	// REST: the service is a RESTful one; else it is a SOAP service of NFFI.
	REST bool
	// Cut: the link is cut in the middle of the run.
	Cut bool
}

func services() (all []service) {
	for _, w := range proxiedWays() {
		for _, rest := range []bool{false, true} {
			for _, cut := range []bool{false, true} {
				for _, l := range serviceNetworks {
					all = append(all, service{form{}, l, w, rest, cut})
				}
				all = append(all, service{form{true}, "wifi-1", w, rest, cut})
			}
		}
	}
	return all
}

// OnlyInCampaign reports whether the run has no file of its own, as one over another network differs in the waveform alone.
func (s service) OnlyInCampaign() bool { return !s.Short && s.link != serviceNetworks[0] }

func (s service) key() string {
	return choose(s.REST, "rest-", "nffi-") + s.proxied.key + choose(s.Cut, "-cut", "")
}

func (s service) path() string {
	return s.folder("e5") + choose(s.Short, "", string(s.link)+"/") + s.key() + ".yaml"
}

// Name returns the experiment's name.
func (s service) Name() string {
	return "e5-" + choose(s.Short, "", string(s.link)+"-") + s.key() + s.suffix()
}

// Network returns the link as written in the file. Of an asymmetric one the service's node is the base.
func (s service) Network() string {
	return "waveform: " + string(s.link) + choose(s.link == "edge", ", base: [server]", "")
}

// Period returns the time between two requests in seconds. The narrowest link carries them.
func (s service) Period() int {
	return choose(s.REST, choose(s.Short, 1, 3), choose(s.Short, 5, 30))
}

// Requests returns the number of requests.
func (s service) Requests() int { return s.requesting() / s.Period() }

func (s service) requesting() int { return choose(s.Short, 40, 300) }

// Messaging returns the service, and its client, as written in the file.
func (s service) Messaging() string {
	transport := s.Transport()
	if s.REST {
		transport += ", encoding: json"
	}
	return fmt.Sprintf("{transport: %s, timeout: %ds%s, push: {from: [client], to: server, period: %ds, payload: %s}, reply: %q}",
		transport, s.timeout(), choose(s.Protocol != "", ", via: near", ""), s.Period(), s.Payload(), s.Reply())
}

// timeout returns the client's in seconds, which is the proxies' deadline too: nobody waits for what comes later.
func (s service) timeout() int { return choose(s.Short, 30, 90) }

// Transport returns that of requests.
func (s service) Transport() string { return choose(s.REST, "http", "soap") }

// Payload returns that of requests.
func (s service) Payload() string { return choose(s.REST, "geojson", "nffi") }

// Reply returns the content of responses.
func (s service) Reply() string { return choose(s.REST, "geojson", "nffi:20") }

// Near returns the near proxy as written in the file.
func (s service) Near() string {
	near := "{peer: far, protocol: " + s.Protocol
	if s.Protocol == "amqp" {
		near += ", broker: broker"
	}
	if s.Compression != "" {
		near += ", compression: " + s.Compression
	}
	return fmt.Sprintf("%s, deadline: %ds}", near, s.timeout())
}

// AppsOf returns the apps of the client's or the service's node.
func (s service) AppsOf(node string) string {
	apps := "service"
	switch {
	case s.Protocol == "":
	case node == "client":
		apps += ", near"
	case s.Protocol == "amqp":
		apps += ", far, broker"
	default:
		apps += ", far"
	}
	return apps
}

// Start returns the start of requests in seconds after T0. A broker is up by then, and the proxies have connected to it.
func (s service) Start() int { return choose(s.Short, 30, 60) }

// Stop returns the end of requests in seconds after T0.
func (s service) Stop() int { return s.Start() + s.requesting() }

// Down returns the link's time of silence in seconds.
func (s service) Down() int { return choose(s.Short, 15, 60) }

// DownAt and UpAt return its begin and end in seconds after T0.
func (s service) DownAt() int { return s.Start() + (s.requesting()-s.Down())/2 }

// UpAt returns the end of the silence in seconds after T0.
func (s service) UpAt() int { return s.DownAt() + s.Down() }

// Timeline returns the entries as written in the file.
func (s service) Timeline() []string {
	all := []string{fmt.Sprintf("{at: %ds, start: [service]}", s.Start())}
	if s.Cut {
		all = append(all, fmt.Sprintf("{at: %ds, set: [{network: link, silent: true}]}", s.DownAt()),
			fmt.Sprintf("{at: %ds, set: [{network: link, silent: false}]}", s.UpAt()))
	}
	return append(all, fmt.Sprintf("{at: %ds, stop: [service]}", s.Stop()))
}

// timeline returns them in one line.
func (s service) timeline() string { return "[" + strings.Join(s.Timeline(), ", ") + "]" }

// Duration returns the duration in seconds.
func (s service) Duration() int { return s.Stop() + 5 }

// Drain returns the drain time, in which every request has its response or has failed.
func (s service) Drain() string {
	return choose(s.Short, "{max: 60s, quietFor: 35s}", "{max: 150s, quietFor: 95s}")
}
