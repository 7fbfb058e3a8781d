package amqplink

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/proxy/link"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/amqp/amqptest"
)

func TestAConnectionCountsAsLostAfterTheSilenceOfTheConfiguration(t *testing.T) {
	l := testport.Listen(t)
	config := proxyconfig.Config{Near: &proxyconfig.Near{Queue: "q"}, AMQP: &proxyconfig.AMQP{Broker: l.Addr().String()}, Retry: proxyconfig.Retry{SilenceSeconds: 60}}
	sender, err := Dial(link.Setup{Config: config, Warn: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	heartbeat, err := amqptest.Login(conn, 60)
	// The library waits for one and a half.
	if silence := time.Duration(heartbeat) * time.Second * 3 / 2; err != nil || silence != time.Minute {
		t.Errorf("the connection is lost after %v, %v; want 1m", silence, err)
	}
}
