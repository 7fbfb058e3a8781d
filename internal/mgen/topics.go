package mgen

import (
	"fmt"
	"net/netip"
	"strings"
)

// Topic returns the topic of messages to an address and port by a protocol: mgen/PROTOCOL/ADDRESS/PORT.
func Topic(protocol Protocol, address string, port uint16) string {
	return fmt.Sprintf("mgen/%s/%s/%d", strings.ToLower(string(protocol)), address, port)
}

// Destinations returns the topics that each flow sends to, in order of time. Hosts must be addresses.
func (s *Script) Destinations() map[uint32][]string {
	protocols, topics := map[uint32]Protocol{}, map[uint32][]string{}
	for _, e := range s.Events {
		if e.Type == On {
			protocols[e.Flow] = e.Options.Protocol
		}
		if d := e.Options.Destination; d != nil {
			topics[e.Flow] = append(topics[e.Flow], Topic(protocols[e.Flow], d.Host, d.Port))
		}
	}
	return topics
}

// Receives returns the topics of a list that a node with this script receives at some time, in the list's order: those of a
// port that it listens to, at one of its own addresses, at a broadcast address, or of a group that it joins.
func (s *Script) Receives(topics []string, own []netip.Addr) (received []string) {
	r := newReceiver(s, own)
	for _, topic := range topics {
		if r.hears[topic] {
			received = append(received, topic)
		}
	}
	return received
}

type receiver struct{ hears map[string]bool }

func newReceiver(s *Script, own []netip.Addr) receiver {
	r := receiver{map[string]bool{}}
	listens := map[Protocol][]PortRange{}
	for _, e := range s.Events {
		if e.Type == Listen {
			listens[e.Protocol] = append(listens[e.Protocol], e.Ports...)
		}
	}
	for _, address := range own {
		r.add(UDP, address.String(), listens[UDP])
		r.add(TCP, address.String(), listens[TCP])
	}
	for _, e := range s.Events {
		if e.Type == Join {
			// JOIN with a port listens to it.
			r.add(UDP, e.Group, listens[UDP])
			r.add(UDP, e.Group, e.Ports)
		}
	}
	return r
}

func (r receiver) add(protocol Protocol, address string, ranges []PortRange) {
	for _, ports := range ranges {
		for port := int(ports.First); port <= int(ports.Last); port++ {
			r.hears[Topic(protocol, address, uint16(port))] = true
		}
	}
}
