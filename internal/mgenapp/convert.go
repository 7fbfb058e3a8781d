package mgenapp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/mgen"
)

// converter converts mgen's log lines to records (guide, section 7).
type converter struct {
	config Config
	now    func() time.Time
	// fragments has the bytes so far of incomplete TCP messages, by sender.
	fragments map[message]int
	// unknownSenders has addresses of no node, each reported once.
	unknownSenders map[string]bool
	warn           func(string)
}

// message is a message of a flow of a sender.
type message struct {
	from           string
	wire, sequence uint32
}

func newConverter(config Config, warn func(string)) *converter {
	return &converter{config: config, now: time.Now, fragments: map[message]int{}, unknownSenders: map[string]bool{}, warn: warn}
}

// Flags of a part of a TCP message (guide, 7.2): all parts except the last have one, the last of several the other.
const (
	flagContinues = 0x01
	// maxFragments bounds the memory for a peer that breaks off repeatedly.
	maxFragments = 4096
)

// convert converts a line; false for events of no message, and for an own message that came back.
func (c *converter) convert(line string) (messagelog.Record, bool, error) {
	words := strings.Fields(line)
	if len(words) < 2 || words[1] != "SEND" && words[1] != "RECV" {
		return messagelog.Record{}, false, nil
	}
	at, err := c.time(words[0])
	if err != nil {
		return messagelog.Record{}, false, err
	}
	f := fields(words[2:])
	m := message{from: f["src"]}
	wire, errFlow := strconv.ParseUint(f["flow"], 10, 32)
	sequence, errSequence := strconv.ParseUint(f["seq"], 10, 32)
	size, errSize := strconv.Atoi(f["size"])
	address, port, okDestination := endpoint(f["dst"])
	if errFlow != nil || errSequence != nil || errSize != nil || !okDestination || f["proto"] == "" {
		return messagelog.Record{}, false, fmt.Errorf("want flow, seq, size, dst and proto")
	}
	m.wire, m.sequence = uint32(wire), uint32(sequence)
	record := messagelog.Record{TimeNanoseconds: at.UnixNano(), Topic: mgen.Topic(mgen.Protocol(f["proto"]), address, port), Bytes: size}
	if words[1] == "SEND" {
		flow, _ := mgen.FlowOf(m.wire)
		record.Instance, record.Status, record.ID = Sender(c.config.Instance, flow), messagelog.Sent, mgen.MessageID(c.config.Node, m.wire, m.sequence)
		return record, true, nil
	}
	ok, err := c.received(&record, m, f["flags"])
	return record, ok, err
}

// received completes the record of a completely received message.
func (c *converter) received(record *messagelog.Record, m message, flags string) (bool, error) {
	from, _, ok := endpoint(m.from)
	if !ok {
		return false, fmt.Errorf("want src>ADDRESS/PORT")
	}
	node := c.config.Nodes[from]
	if node == c.config.Node {
		return false, nil
	}
	if node == "" {
		node = "unknown:" + from
		if !c.unknownSenders[from] && len(c.unknownSenders) < maxFragments {
			c.unknownSenders[from] = true
			c.warn("messages come from " + from + ", which is the address of no node that runs mgen: they are in no figure")
		}
	}
	if flags != "" {
		value, err := strconv.ParseUint(flags, 0, 8)
		if err != nil {
			return false, fmt.Errorf("flags %q: want a number", flags)
		}
		total := c.fragments[m] + record.Bytes
		if value&flagContinues != 0 {
			if len(c.fragments) >= maxFragments {
				clear(c.fragments)
			}
			c.fragments[m] = total
			return false, nil
		}
		delete(c.fragments, m)
		record.Bytes = total
	}
	record.Instance, record.Status, record.ID = c.config.Instance, messagelog.Received, mgen.MessageID(node, m.wire, m.sequence)
	return true, nil
}

// fields returns the words of the form name>value.
func fields(words []string) map[string]string {
	found := map[string]string{}
	for _, word := range words {
		if name, value, ok := strings.Cut(word, ">"); ok {
			found[name] = value
		}
	}
	return found
}

// endpoint reads an address and port such as 198.18.0.1/5000.
func endpoint(text string) (address string, port uint16, ok bool) {
	address, digits, _ := strings.Cut(text, "/")
	number, errPort := strconv.ParseUint(digits, 10, 16)
	parsed, err := netip.ParseAddr(address)
	if err != nil || errPort != nil {
		return "", 0, false
	}
	return parsed.String(), uint16(number), true
}

const day = 24 * time.Hour

// time completes a time of day in UTC, as mgen logs no date, to the instant nearest to now.
func (c *converter) time(text string) (time.Time, error) {
	clock, err := time.Parse("15:04:05.999999", text)
	if err != nil {
		return time.Time{}, fmt.Errorf("time %q: want hours:minutes:seconds", text)
	}
	now := c.now().UTC()
	at := now.Truncate(day).Add(clock.Sub(clock.Truncate(day)))
	switch away := at.Sub(now); {
	case away > day/2:
		at = at.Add(-day)
	case away < -day/2:
		at = at.Add(day)
	}
	return at, nil
}
