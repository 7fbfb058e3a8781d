// Package trafficconfig is what the operator tells one instance of the traffic generator, as a
// JSON file named by `traffic --config FILE`. Each instance is one client that publishes,
// subscribes or does both over one connection.
package trafficconfig

// Publish describes the messages that an instance sends.
type Publish struct {
	// Topic with its placeholders already replaced.
	Topic string `json:"topic"`
	QoS   int    `json:"qos"`
	// Payload is geojson, nffi or bytes:N.
	Payload string `json:"payload"`
	// PeriodSeconds between two messages.
	PeriodSeconds float64 `json:"periodSeconds"`
	// FirstAfterSeconds is the phase: the first message goes out this long after the instance was
	// started; from 0 to less than PeriodSeconds. The operator draws it.
	FirstAfterSeconds float64 `json:"firstAfterSeconds"`
}

// Subscribe describes the messages that an instance receives.
type Subscribe struct {
	Topics []string `json:"topics"`
	QoS    int      `json:"qos"`
}

// Config is what one instance of the traffic generator does.
type Config struct {
	// Instance is node/app, or node/app/i for several instances; it goes into the message log.
	Instance string `json:"instance"`
	// Protocol is mqtt or mqtt-udp.
	Protocol string `json:"protocol"`
	// Version of MQTT: 3.1.1 or 5.
	Version string `json:"version,omitempty"`
	// Broker is host:port of the broker, for protocols that have one.
	Broker string `json:"broker,omitempty"`
	// Broadcast is address:port that brokerless protocols send to, such as 198.18.9.255:1883.
	Broadcast string `json:"broadcast,omitempty"`
	// Interface that brokerless protocols are bound to.
	Interface string `json:"interface,omitempty"`

	Publish   *Publish   `json:"publish,omitempty"`
	Subscribe *Subscribe `json:"subscribe,omitempty"`

	// Country, Unit and Entity identify the sender in payloads, such as PRT, PRT-UNIT001, PRT-S003.
	// Entity is unique within the experiment; message ids are Entity_1, Entity_2, …
	Country string `json:"country,omitempty"`
	Unit    string `json:"unit,omitempty"`
	Entity  string `json:"entity,omitempty"`
	// Seed of this instance's random streams.
	Seed int64 `json:"seed"`
	// MetricsPort for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
}
