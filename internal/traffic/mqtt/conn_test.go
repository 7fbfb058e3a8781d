package mqtt

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	packets311 "github.com/eclipse/paho.mqtt.golang/packets"

	"vignette.dev/vignette/internal/traffic/mqttwire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// wire records writes as the kernel would get them.
type wire struct {
	net.Conn
	writes [][]byte
	fail   error
}

func (w *wire) Write(p []byte) (int, error) {
	if w.fail != nil {
		return 0, w.fail
	}
	w.writes = append(w.writes, bytes.Clone(p))
	return len(p), nil
}

func TestEachPacketIsOneWriteAndPublishesAreTold(t *testing.T) {
	payload := []byte(strings.Repeat("x", 900))
	for name, version := range map[string]struct {
		form  mqttwire.Form
		write func(*conn) error
	}{
		"MQTT 5": {mqttwire.MQTT5, func(c *conn) error {
			_, err := packets.NewControlPacket(packets.PINGREQ).WriteTo(c)
			p := packets.Publish{Topic: "a/b", QoS: 1, PacketID: 7, Payload: payload, Properties: &packets.Properties{ContentType: "t"}}
			_, err2 := p.WriteTo(c)
			return errors.Join(err, err2)
		}},
		"MQTT 3.1.1": {mqttwire.MQTT311, func(c *conn) error {
			err := packets311.NewControlPacket(packets311.Pingreq).Write(c)
			p := packets311.NewControlPacket(packets311.Publish).(*packets311.PublishPacket)
			p.TopicName, p.Qos, p.MessageID, p.Payload = "a/b", 2, 7, payload
			return errors.Join(err, p.Write(c))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			w := &wire{}
			c := &conn{Conn: w, form: version.form, sent: func(at time.Time, topic string, content []byte) {
				if at.IsZero() || !bytes.Equal(content, payload) {
					t.Errorf("told of %d bytes at %v", len(content), at)
				}
				told = append(told, topic)
			}}
			if err := version.write(c); err != nil {
				t.Fatal(err)
			}
			if len(w.writes) != 2 || !slices.Equal(told, []string{"a/b"}) {
				t.Errorf("%d writes, told of %v; want 2 writes, one message on a/b", len(w.writes), told)
			}
		})
	}
}

func TestAPacketThatCouldNotBeWrittenIsNotSent(t *testing.T) {
	c := &conn{Conn: &wire{fail: errors.New("broken pipe")}, form: mqttwire.MQTT311, sent: func(time.Time, string, []byte) { t.Error("told of a message that was not written") }}
	if _, err := c.Write([]byte("\x30\x08\x00\x03a/bhey")); err == nil {
		t.Error("want the error of the write")
	}
}

func TestBackoffBeginsShortAndIsBounded(t *testing.T) {
	d := dialer{random: rand.New(rand.NewPCG(1, 1))}
	now := time.Unix(1000, 0)
	var waits []time.Duration
	for range 12 {
		waits = append(waits, d.wait(now))
		now = now.Add(time.Second)
	}
	if waits[0] != 0 || waits[1] > firstBackoff || waits[1] < firstBackoff*8/10 || waits[11] > lastBackoff || waits[11] < lastBackoff*8/10 {
		t.Errorf("waits %v; want nothing, about %v, … about %v", waits, firstBackoff, lastBackoff)
	}
	d.connected()
	if wait := d.wait(now); wait > firstBackoff {
		t.Errorf("wait after a connection %v; want up to %v", wait, firstBackoff)
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	good := Config{Broker: "nor:1883", ClientID: "x"}
	for want, change := range map[string]func(*Config){
		"host:port":    func(c *Config) { c.Broker = "nor" },
		"QoS 3":        func(c *Config) { c.PublishQoS = 3 },
		"client id":    func(c *Config) { c.ClientID = "" },
		"topic filter": func(c *Config) { c.Filters = []string{"a#"} },
		"MQTT version": func(c *Config) { c.Version = "3.1" },
	} {
		c := good
		change(&c)
		if _, err := New(c, transport.Events{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error that names %s", err, want)
		}
	}
}
