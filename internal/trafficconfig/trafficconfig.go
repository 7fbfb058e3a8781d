// Package trafficconfig is the operator's configuration of one instance of the traffic generator, a
// JSON file named by `traffic --config FILE`. Each instance is one client that publishes,
// subscribes or does both over one connection.
package trafficconfig

import (
	"fmt"
	"time"

	"vignette.dev/vignette/internal/traffic/mqttudp"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/zeromq"
)

// Sessions of MQTT and MQTT-SN.
const (
	// SessionAuto is a session that outlives connections if QoS 1 or 2 is used.
	SessionAuto       = ""
	SessionClean      = "Clean"
	SessionPersistent = "Persistent"
)

// AdaptRate slows a publisher down while its node's radio has queued frames.
type AdaptRate struct {
	HighFrames       int     `json:"highFrames"`
	LowFrames        int     `json:"lowFrames"`
	MaxPeriodSeconds float64 `json:"maxPeriodSeconds"`
}

// Repeat has MQTT/UDP send each message again so many times, one every IntervalSeconds.
type Repeat struct {
	Times           int     `json:"times"`
	IntervalSeconds float64 `json:"intervalSeconds"`
}

// Publish describes the messages that an instance sends.
type Publish struct {
	// Topic has its placeholders already replaced. It is empty for Messages, which have their own.
	Topic string `json:"topic,omitempty"`
	// QoS is from -1 (MQTT-SN: without a connection) to 2.
	QoS int `json:"qos"`
	// Retain asks the broker to keep the last message of a topic.
	Retain bool `json:"retain,omitempty"`
	// PredefinedTopics of MQTT-SN with their ids, as on the gateway. QoS -1 uses only these and names of two characters.
	PredefinedTopics map[string]uint16 `json:"predefinedTopics,omitempty"`
	// AdaptRate configures the adaptation of the rate; nil for a fixed rate.
	AdaptRate *AdaptRate `json:"adaptRate,omitempty"`
	// Repeat has each message sent again; nil for none.
	Repeat *Repeat `json:"repeat,omitempty"`
	// Payload is geojson, nffi, gps, image:N, bytes:N or file:PATH; for PeriodSeconds.
	Payload string `json:"payload,omitempty"`

	// Encoding and Compression of payload geojson or nffi; empty for the payload's own form.
	Encoding    string `json:"encoding,omitempty"`
	Compression string `json:"compression,omitempty"`

	// One of the next three sets the times of messages, after the start and FirstAfterSeconds.

	// PeriodSeconds is the time between two messages.
	PeriodSeconds float64 `json:"periodSeconds,omitempty"`
	// Pattern is an MGEN script of ON, MOD and OFF events. It sets the messages' sizes too.
	Pattern string `json:"pattern,omitempty"`
	// Messages of a script, in the order of their times.
	Messages []Message `json:"messages,omitempty"`

	// FirstAfterSeconds is lead and phase: the time from the instance's start to its first message.
	// The operator draws the phase, from 0 to less than PeriodSeconds.
	FirstAfterSeconds float64 `json:"firstAfterSeconds"`
	// AfterConnection counts that time from the first connection instead of the instance's start.
	AfterConnection bool `json:"afterConnection,omitempty"`
}

// Message is one message of a script.
type Message struct {
	AtSeconds float64 `json:"atSeconds"`
	Topic     string  `json:"topic"`
	Type      string  `json:"type"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	Text      string  `json:"text,omitempty"`
	// Bytes is the size to which the message is filled up; 0 for no filling.
	Bytes int `json:"bytes,omitempty"`
}

// Subscribe describes the messages that an instance receives.
type Subscribe struct {
	Topics []string `json:"topics"`
	QoS    int      `json:"qos"`
	// SleepSeconds is the time that an MQTT-SN client sleeps between two checks for messages; 0 for an awake client.
	SleepSeconds float64 `json:"sleepSeconds,omitempty"`
}

// Config configures one instance of the traffic generator.
type Config struct {
	// Instance is node/app, or node/app/i for several instances. The message log has it.
	Instance string `json:"instance"`
	// Protocol is the name of one of Protocols.
	Protocol string `json:"protocol"`
	// Version is MQTT's: 3.1.1 or 5.
	Version string `json:"version,omitempty"`
	// Broker is the broker's host:port, for protocols with one.
	Broker string `json:"broker,omitempty"`
	// Failover has host:port of the brokers to try next, in this order. After the last one follows Broker again.
	Failover []string `json:"failover,omitempty"`
	// Security is the security of the connection to any broker; nil for none.
	Security *protocol.Security `json:"security,omitempty"`
	// Session is the session of MQTT and MQTT-SN.
	Session string `json:"session,omitempty"`
	// Transport is ZeroMQ's: tcp, pgm or pgm-raw.
	Transport string `json:"transport,omitempty"`
	// PGM configures pgm and pgm-raw.
	PGM *zeromq.PGM `json:"pgm,omitempty"`
	// WSN configures WS-Notification; nil for the defaults.
	WSN *wsn.Options `json:"wsn,omitempty"`
	// Broadcast is the destination address:port of brokerless protocols, such as 198.18.9.255:1883.
	Broadcast string `json:"broadcast,omitempty"`
	// Interface is the interface of brokerless protocols and PGM.
	Interface string `json:"interface,omitempty"`
	// SignatureKey of MQTT/UDP signs messages, and accepts only those signed with it; empty for no signatures.
	SignatureKey string `json:"signatureKey,omitempty"`

	Publish   *Publish   `json:"publish,omitempty"`
	Subscribe *Subscribe `json:"subscribe,omitempty"`

	// Country, Unit and Entity identify the sender in payloads, such as PRT, PRT-UNIT001, PRT-S003.
	// Entity is unique within the experiment; message ids are Entity_1, Entity_2, …
	Country string `json:"country,omitempty"`
	Unit    string `json:"unit,omitempty"`
	Entity  string `json:"entity,omitempty"`
	// Seed seeds this instance's random streams.
	Seed int64 `json:"seed"`
	// MetricsPort is the port for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
}

// Validate returns what is wrong with a configuration, if anything.
func (c Config) Validate() error {
	described := ProtocolOf(c.Protocol)
	switch {
	case c.Instance == "":
		return fmt.Errorf("instance is empty: want node/app or node/app/number")
	case described.Name == "":
		return fmt.Errorf("protocol is %q: want one of %s", c.Protocol, protocolNames())
	case !described.Broadcast && c.Broker == "":
		return fmt.Errorf("broker is empty: protocol %s wants host:port", c.Protocol)
	case described.Broadcast && c.Broadcast == "":
		return fmt.Errorf("broadcast is empty: protocol %s wants address:port", c.Protocol)
	case c.Publish == nil && c.Subscribe == nil:
		return fmt.Errorf("instance %s has neither publish nor subscribe: want one at least", c.Instance)
	case c.MetricsPort < 0 || c.MetricsPort > 65535:
		return fmt.Errorf("metricsPort is %d: want 0 to 65535", c.MetricsPort)
	}
	if err := c.validatePublish(described); err != nil {
		return err
	}
	if s := c.Subscribe; s != nil {
		if len(s.Topics) == 0 {
			return fmt.Errorf("subscribe.topics is empty: want a topic filter, such as #")
		}
		if s.QoS < 0 || s.QoS > described.MaxQoS {
			return fmt.Errorf("subscribe.qos is %d: protocol %s has 0 to %d", s.QoS, c.Protocol, described.MaxQoS)
		}
	}
	return nil
}

// LongestTime of a publisher: its period, also an adapted one.
const LongestTime = 1_000_000 * time.Second

// Connectionless reports whether an instance can publish without a connection. One that also subscribes at a broker has one.
func (c Config) Connectionless() bool {
	qos := 0
	if c.Publish != nil && c.Subscribe == nil {
		qos = c.Publish.QoS
	}
	return ProtocolOf(c.Protocol).Connectionless(c.Transport, qos)
}

func (c Config) validatePublish(described protocol.Protocol) error {
	p := c.Publish
	switch {
	case p == nil:
		return nil
	case p.Topic == "" && len(p.Messages) == 0:
		return fmt.Errorf("publish.topic is empty: want a topic")
	case c.Entity == "":
		return fmt.Errorf("entity is empty: a publisher's message ids are made from it")
	case p.QoS < described.MinQoS || p.QoS > described.MaxQoS:
		return fmt.Errorf("publish.qos is %d: protocol %s has %d to %d", p.QoS, c.Protocol, described.MinQoS, described.MaxQoS)
	case (p.PeriodSeconds != 0 && p.Pattern != "") || (len(p.Messages) > 0 && (p.PeriodSeconds != 0 || p.Pattern != "")):
		return fmt.Errorf("publish has several of periodSeconds, pattern and messages: want one")
	case p.Pattern == "" && len(p.Messages) == 0 && !(p.PeriodSeconds >= 0.001 && p.PeriodSeconds <= LongestTime.Seconds()):
		return fmt.Errorf("publish.periodSeconds is %v: want 0.001 to 1000000", p.PeriodSeconds)
	case p.AdaptRate != nil && p.PeriodSeconds == 0:
		return fmt.Errorf("publish.adaptRate: want a periodSeconds, which is what is adapted")
	case p.AdaptRate != nil && (p.AdaptRate.LowFrames >= p.AdaptRate.HighFrames || !(p.AdaptRate.MaxPeriodSeconds > 0 && p.AdaptRate.MaxPeriodSeconds <= LongestTime.Seconds())):
		return fmt.Errorf("publish.adaptRate has lowFrames %d, highFrames %d and maxPeriodSeconds %v s: want lowFrames below highFrames, and maxPeriodSeconds above 0, up to 1000000 s",
			p.AdaptRate.LowFrames, p.AdaptRate.HighFrames, p.AdaptRate.MaxPeriodSeconds)
	case p.Repeat != nil && !described.Broadcast:
		return fmt.Errorf("publish.repeat: protocol %s does not repeat messages", c.Protocol)
	case p.Repeat != nil && (p.Repeat.Times < 1 || !(p.Repeat.IntervalSeconds >= 0.001 && p.Repeat.IntervalSeconds <= 60)):
		return fmt.Errorf("publish.repeat is %d times, one every %v s: want times from 1 and intervalSeconds from 0.001 to 60 s", p.Repeat.Times, p.Repeat.IntervalSeconds)
	case p.Repeat != nil && !(float64(p.Repeat.Times)*p.Repeat.IntervalSeconds <= mqttudp.Remembered*p.PeriodSeconds):
		return fmt.Errorf("publish.repeat is %d times, one every %v s, with periodSeconds %v s: want a period, and at most %d messages in the time of a message's repeats",
			p.Repeat.Times, p.Repeat.IntervalSeconds, p.PeriodSeconds, mqttudp.Remembered)
	case !(p.FirstAfterSeconds >= 0 && p.FirstAfterSeconds <= 2e6): // lead and phase
		return fmt.Errorf("publish.firstAfterSeconds is %v: want 0 to 2000000", p.FirstAfterSeconds)
	}
	for i, m := range p.Messages {
		if m.Topic == "" || !(m.AtSeconds >= 0 && m.AtSeconds <= 1e9) {
			return fmt.Errorf("publish.messages[%d] at %v to topic %q: want a moment from 0 and a topic", i, m.AtSeconds, m.Topic)
		}
	}
	return nil
}
