package mgen

import (
	"fmt"
	"net/netip"
	"strconv"
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
	// listens has PROTOCOL/PORT; joined has groups, and GROUP/PORT of those joined with a port, which listens to it.
	listens, joined, at := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, e := range s.Events {
		switch e.Type {
		case Listen:
			addPorts(listens, strings.ToLower(string(e.Protocol)), e.Ports)
		case Join:
			joined[e.Group] = true
			addPorts(joined, e.Group, e.Ports)
		}
	}
	for _, address := range own {
		at[address.String()] = true
	}
	for _, topic := range topics {
		parts := strings.Split(topic, "/") // see Topic
		protocol, address, port := parts[1], parts[2], parts[3]
		group := protocol == "udp" && joined[address]
		if listens[protocol+"/"+port] && (at[address] || group) || group && joined[address+"/"+port] {
			received = append(received, topic)
		}
	}
	return received
}

func addPorts(to map[string]bool, begin string, ranges []PortRange) {
	for _, ports := range ranges {
		for port := int(ports.First); port <= int(ports.Last); port++ {
			to[begin+"/"+strconv.Itoa(port)] = true
		}
	}
}
