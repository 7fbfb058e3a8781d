package mgen

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String returns the script for Debian's mgen: one command a line, in order of time.
func (s *Script) String() string {
	var b strings.Builder
	for _, g := range s.Globals {
		fmt.Fprintf(&b, "%s %s\n", g.Name, g.Value)
	}
	for _, e := range s.Events {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// String returns the event's line.
func (e Event) String() string {
	line := seconds(e.At) + " " + string(e.Type)
	switch e.Type {
	case Listen, Ignore:
		return line + " " + string(e.Protocol) + " " + ports(e.Ports)
	case Join, Leave:
		line += " " + e.Group
		line += given("SRC", e.Source) + given("INTERFACE", e.Interface)
		if e.Ports != nil {
			line += " PORT " + ports(e.Ports)
		}
		return line
	}
	return line + " " + strconv.FormatUint(uint64(e.Flow), 10) + e.Options.String()
}

func given(name, value string) string {
	if value == "" {
		return ""
	}
	return " " + name + " " + value
}

// seconds formats a duration exactly, without an exponent.
func seconds(d time.Duration) string {
	text := fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
	text = strings.TrimRight(text, "0")
	if strings.HasSuffix(text, ".") {
		text += "0"
	}
	return text
}

func ports(ranges []PortRange) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = strconv.Itoa(int(r.First))
		if r.Last != r.First {
			parts[i] += "-" + strconv.Itoa(int(r.Last))
		}
	}
	return strings.Join(parts, ",")
}

// String returns the options after a flow's number, each with a space before it.
func (o Options) String() string {
	var b strings.Builder
	if o.Protocol != "" {
		b.WriteString(" " + string(o.Protocol))
	}
	if o.Connect {
		b.WriteString(" CONNECT")
	}
	optional(&b, "SRC", o.SourcePort)
	if d := o.Destination; d != nil {
		fmt.Fprintf(&b, " DST %s/%d", d.Host, d.Port)
	}
	if o.Pattern != nil {
		b.WriteString(" " + o.Pattern.String())
	}
	optional(&b, "COUNT", o.Count)
	optional(&b, "SEQUENCE", o.Sequence)
	optional(&b, "TOS", o.TOS)
	optional(&b, "TTL", o.TTL)
	optional(&b, "TXBUFFER", o.TXBuffer)
	optional(&b, "LABEL", o.Label)
	optional(&b, "QUEUE", o.Queue)
	b.WriteString(given("INTERFACE", o.Interface))
	if o.Broadcast != nil {
		b.WriteString(" BROADCAST " + map[bool]string{true: "ON", false: "OFF"}[*o.Broadcast])
	}
	if o.Data != nil {
		b.WriteString(" DATA [" + hex.EncodeToString(o.Data) + "]")
	}
	return b.String()
}

func optional[T any](b *strings.Builder, name string, value *T) {
	if value != nil {
		fmt.Fprintf(b, " %s %v", name, *value)
	}
}

// String returns the pattern with its parameters.
func (p Pattern) String() string {
	switch p.Kind {
	case Bursts:
		b := p.Burst
		return fmt.Sprintf("BURST [%s %s %s %s %s]", map[bool]string{true: "RANDOM", false: "REGULAR"}[b.Random], decimal(b.IntervalSeconds),
			b.Pattern, map[bool]string{true: "EXPONENTIAL", false: "FIXED"}[b.Exponential], decimal(b.DurationSeconds))
	case Clone:
		return fmt.Sprintf("CLONE [tcpdump %s %d]", p.File, p.Repeat)
	case Jitter:
		return fmt.Sprintf("JITTER [%s %d %s]", decimal(p.Rate), p.Bytes, decimal(p.Fraction))
	}
	return fmt.Sprintf("%s [%s %d]", p.Kind, decimal(p.Rate), p.Bytes)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
