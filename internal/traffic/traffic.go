// Package traffic is one instance of the traffic generator: a client that publishes, subscribes or does
// both over one connection of some protocol, and logs what happens to each message.
//
// Measuring points. triggered: the message is due and made. sent: it is passed to the socket.
// received: it leaves the socket or client library. processed: its id has been read.
package traffic

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/traffic/payload/geojson"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// closeTimeout is how long to wait for outstanding acknowledgements: less than the 2 s of grace of instances.
const closeTimeout = 1500 * time.Millisecond

// openTimeout is how long a first message waits for the socket of a protocol without a connection, which takes under 1 ms.
const openTimeout = 100 * time.Millisecond

// Check returns the error for a configuration that Run would refuse on any network.
func Check(config trafficconfig.Config) error {
	if err := config.Validate(); err != nil || config.Publish == nil {
		return err
	}
	_, err := newTimetable(config)
	return err
}

// Run runs one instance until ctx ends. When quiet is closed it stops publishing and goes on receiving.
func Run(ctx context.Context, config trafficconfig.Config, log *messagelog.Writer, quiet <-chan struct{}, warn func(text string)) error {
	if err := config.Validate(); err != nil {
		return err
	}
	start, err := appinstance.Start()
	if err != nil {
		return err
	}
	m := newMetrics(config.Instance)
	r := newRecorder(config.Instance, config.Entity, log, m, warn)
	p, err := newPublisher(config, r, start, warn)
	if err != nil {
		return err
	}
	m.Serve(ctx, config.MetricsPort, warn)
	client, err := newClient(config, p, r)
	if err != nil {
		return err
	}
	publishing, stopPublishing := appinstance.UntilQuiet(ctx, quiet)
	defer stopPublishing()
	published := make(chan struct{})
	go func() {
		defer close(published)
		if p != nil {
			p.client = client
			p.run(publishing, p.firstNumber())
		}
	}()
	<-ctx.Done()
	shutDown(client, r, published, p != nil && p.promised)
	return nil
}

// shutDown waits a short time for messages of QoS 1 and 2 to be acknowledged, and disconnects.
func shutDown(client transport.Client, r *recorder, published <-chan struct{}, promised bool) {
	r.end()
	ending, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	select {
	case <-published:
	case <-ending.Done(): // the protocol refused the message, which is never sent
	}
	for promised && r.unsent() > 0 && ending.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	client.Close(ending)
}

// newPublisher makes the publisher, if there is one.
func newPublisher(config trafficconfig.Config, r *recorder, start time.Time, warn func(string)) (*publisher, error) {
	if config.Publish == nil {
		return nil, nil
	}
	table, err := newTimetable(config)
	if err != nil {
		return nil, err
	}
	_, size := table.largest()
	warnOfSize(config.Publish.Payload, size, warn)
	p := &publisher{firstAfterSeconds: config.Publish.FirstAfterSeconds, afterConnection: config.Publish.AfterConnection, connectionless: config.Connectionless(),
		promised: config.Publish.QoS > 0, entity: config.Entity, timetable: table, recorder: r, start: start, sizeHint: size,
		now: time.Now, adapt: newAdaptation(config.Publish, warn)}
	if p.sleep, err = appinstance.Sleep(); err != nil {
		return nil, err
	}
	if p.numbers, err = messagelog.OpenNumbers(config.Entity, start); err != nil {
		return nil, err
	}
	if last := p.numbers.Last; last > 0 {
		warn(fmt.Sprintf("was restarted: message %d was the last before", last))
	}
	return p, nil
}

// warnOfSize warns of messages that long names make larger than the published ones.
func warnOfSize(kind string, size int, warn func(string)) {
	switch {
	case strings.HasPrefix(kind, "geojson") && size > geojson.MaxBytes:
		warn(fmt.Sprintf("geojson messages have up to %d bytes, more than the published %d: country, unit and entity have long names", size, geojson.MaxBytes))
	case (kind == "nffi" || kind == "nffi-long") && size > nffi.MaxBytes:
		warn(fmt.Sprintf("nffi messages have up to %d bytes, more than the published %d: country, unit and entity have long names", size, nffi.MaxBytes))
	}
}

// newClient makes the client of the configured protocol, which starts to connect.
func newClient(config trafficconfig.Config, p *publisher, r *recorder) (transport.Client, error) {
	events := transport.Events{Sent: r.sent, Unsent: r.neverSent, Received: r.received, Connection: r.connection, Subscription: r.subscription, Dropped: r.dropped}
	open, ok := Protocols[config.Protocol]
	if !ok {
		return nil, fmt.Errorf("protocol %q: this program speaks %s", config.Protocol, strings.Join(slices.Sorted(maps.Keys(Protocols)), ", "))
	}
	setup := transport.Setup{Config: config, ClientID: clientID(config.Instance), Warn: r.warn}
	if p != nil {
		setup.LargestTopic, setup.LargestBytes = p.timetable.largest()
	}
	return open(setup, events)
}

// clientID is the instance's name with a colon for the slash, which some brokers' access rules forbid. A colon
// is in no name of a node or app, so ids stay unique.
func clientID(instance string) string {
	return strings.ReplaceAll(instance, "/", ":")
}
