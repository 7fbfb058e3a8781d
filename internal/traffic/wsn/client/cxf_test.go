package client

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/testjava"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/wsn"
)

const pom = "../../../../images/wsn-cxf/pom.xml"

// startCXF runs CXF's broker as the image does, on a free port of loopback.
func startCXF(t *testing.T) string {
	t.Helper()
	libraries, _ := testjava.Jars(t, pom)
	at := fmt.Sprintf("127.0.0.1:%d", testport.Free(t))
	broker := testjava.Start(t, libraries, "org.apache.cxf.wsn.services.Service",
		"-rootUrl", "http://"+at+"/wsn", "-brokerUrl", "vm:(broker:()?persistent=false&useJmx=false)", "-jmxEnable", "false")
	broker.Says("CreatePullPoint\n")
	return at
}

func TestCXFsClientsSpeakToOurBroker(t *testing.T) {
	t.Parallel()
	libraries, _ := testjava.Jars(t, pom)
	at := address(t)
	startBroker(t, at, wsn.BrokerConfig{})
	_, got := startClient(t, subscriber(at, "PRT/+"))
	p, _ := startClient(t, publisher(at, 1))
	s := testjava.Start(t, testjava.Compile(t, libraries, "testdata/CXFClient.java"), "CXFClient", "http://"+at, "http://"+address(t))
	s.Says("ready")
	publish(t, p, "PRT/x/location", `<track xmlns="urn:n"><id>ours</id></track>`)
	s.Says("consumed PRT/x/location {urn:n}track ours")
	s.Step("pull", "pulled PRT/x/location {urn:n}track ours")
	s.Step("current", "current ours")
	s.Step("notify", "done notify")
	eventually(t, "CXF's message", func() bool {
		return slices.ContainsFunc(got.got(), func(m string) bool {
			return strings.HasPrefix(m, "PRT/java <track") && strings.Contains(m, "from java")
		})
	})
	s.Step("register", "unknown registration: ")
	s.Step("pause", "done pause")
	publish(t, p, "PRT/x/location", `<track xmlns="urn:n"><id>paused</id></track>`)
	s.Step("resume", "consumed PRT/x/location {urn:n}track paused")
	s.Step("end", "unknown subscription: ")
}

func TestOurClientsSpeakToCXFsBroker(t *testing.T) {
	t.Parallel()
	at := startCXF(t)
	for name, pull := range map[string]bool{"consumer": false, "pull point": true} {
		t.Run(name, func(t *testing.T) {
			config := subscriber(at, "/PRT/+/location")
			config.WSN = &wsn.Options{Dialect: wsn.DialectSimple, PullPoint: pull}
			_, got := startClient(t, config)
			config = publisher(at, 1)
			config.WSN = &wsn.Options{Dialect: wsn.DialectSimple}
			p, _ := startClient(t, config)
			var want []string
			for i, content := range contents {
				publish(t, p, fmt.Sprintf("/PRT/x.%d/location", i), content)
				want = append(want, " "+content) // of what a filter with wildcards brings CXF does not tell the topic
			}
			eventually(t, "the last message", func() bool { return len(got.got()) >= len(want) })
			received := slices.Sorted(slices.Values(got.got())) // CXF notifies by several threads, in any order
			if slices.Sort(want); !slices.Equal(received, want) {
				t.Errorf("received %q\nwant %q", received, want)
			}
		})
	}
}
