package client

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// startBusy is a broker that never answers a ping. It sends messages until it is silenced, and counts pings.
func startBusy(t *testing.T, version string, silence <-chan struct{}) (address string, pings <-chan time.Time) {
	t.Helper()
	listener := testport.Listen(t)
	got, form, accepted := make(chan time.Time, 100), mqttwire.MQTT311, "\x20\x02\x00\x00"
	if version == Version5 {
		form, accepted = mqttwire.MQTT5, "\x20\x03\x00\x00\x00"
	}
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { conn.Close() })
		reader := bufio.NewReader(conn)
		if _, _, err := readPacket(reader); err != nil {
			return
		}
		_, _ = conn.Write([]byte(accepted))
		go func() {
			for {
				select {
				case <-silence:
					return
				case <-time.After(100 * time.Millisecond):
					_, _ = conn.Write(mqttwire.Append(nil, mqttwire.Publish{Topic: "/PRT/x", Payload: []byte("text")}, form))
				}
			}
		}()
		for {
			switch kind, _, err := readPacket(reader); {
			case err != nil:
				return
			case kind == typePingreq:
				got <- time.Now()
			}
		}
	}()
	return listener.Addr().String(), got
}

func TestAPingWhoseAnswerIsLateEndsASilentConnectionAlone(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run("MQTT "+version, func(t *testing.T) {
			t.Parallel()
			const keepAlive = 2 * time.Second
			silence := make(chan struct{})
			address, pings := startBusy(t, version, silence)
			ended := make(chan string, 10)
			setup := transport.Setup{Config: trafficconfig.Config{Version: version, Broker: address, Publish: &trafficconfig.Publish{}}, ClientID: "test", Warn: func(text string) { t.Log(text) }}
			c, err := openWith(setup, transport.Events{Received: func(time.Time, string, []byte) {}, Connection: func(up bool, reason string) {
				if !up {
					ended <- reason
				}
			}}, keepAlive)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close(t.Context()) })
			for i := range 4 { // the broker would end a connection without pings
				select {
				case <-pings:
				case reason := <-ended:
					t.Fatalf("the connection ends after %d pings: %s", i, reason)
				case <-time.After(15 * time.Second):
					t.Fatalf("%d pings; want one after each %v", i, keepAlive)
				}
			}
			close(silence)
			begun := time.Now()
			select {
			case reason := <-ended:
				if took := time.Since(begun); took < keepAlive {
					t.Errorf("the connection ends %v after the last message; want twice %v", took, keepAlive)
				}
				if !strings.Contains(reason, "no sign of life from the broker for ") {
					t.Errorf("the connection ends: %s; want a reason", reason)
				}
			case <-time.After(15 * time.Second):
				t.Error("the connection does not end though the broker is silent")
			}
		})
	}
}

func TestAMessageThatWaitsForAStuckLinkIsSentOnTheSameConnection(t *testing.T) {
	t.Parallel()
	listener := testport.Listen(t)
	c := open(t, publisher(Version311, listener.Addr().String(), 1))
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	if _, _, err := readPacket(reader); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("\x20\x02\x00\x00")); err != nil {
		t.Fatal(err)
	}
	const messages = 3
	for range messages {
		if err := c.Publish("/PRT/x", make([]byte, 16<<20)); err != nil { // more than the kernels' buffers
			t.Fatal(err)
		}
	}
	time.Sleep(31 * time.Second) // the library's own patience is 30 s
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for got := 0; got < messages; {
		kind, _, err := readPacket(reader)
		if err != nil {
			t.Fatalf("%d of %d messages came: %v", got, messages, err)
		}
		if kind == mqttwire.TypePublish {
			got++
		}
	}
}
