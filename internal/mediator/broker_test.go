package mediator

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic"
	"vignette.dev/vignette/internal/trafficconfig"
)

// mosquitto starts a real broker, and gives its port.
func mosquitto(t *testing.T) int { return testtool.Mosquitto(t, "allow_anonymous true").Port }

var eventually = testtool.Eventually

func TestForeignClientsOfTwoRealBrokersHearEachOther(t *testing.T) {
	testtool.Need(t, "mosquitto_pub", "mosquitto_sub")
	ports := []int{mosquitto(t), mosquitto(t)}
	config := trafficconfig.Mediator{Instance: "hub/mediator"}
	for i, port := range ports {
		config.Legs = append(config.Legs, trafficconfig.Leg{Name: fmt.Sprint(port), Protocol: "mqtt", Version: []string{"3.1.1", "5"}[i], QoS: i,
			Broker: fmt.Sprintf("127.0.0.1:%d", port), Topics: []string{"#"}, Prefix: []string{"", "far/away/"}[i]})
	}
	log := &syncbuffer.Buffer{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, config, traffic.Protocols, func(text string) { fmt.Fprintln(log, text) })
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "two connections", func() bool { return strings.Count(log.String(), ": connected") == 2 })
	heard := []*syncbuffer.Buffer{{}, {}}
	for i, port := range ports {
		sub := exec.Command("mosquitto_sub", "-p", fmt.Sprint(port), "-t", "#", "-v")
		sub.Stdout = heard[i]
		if err := sub.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = sub.Process.Kill()
			_ = sub.Wait()
		}()
	}
	publish := func(port int, topic, content string) {
		if out, err := exec.Command("mosquitto_pub", "-p", fmt.Sprint(port), "-t", topic, "-m", content).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	// Until both listen, the words are not what is counted.
	for i, port := range ports {
		eventually(t, "a subscriber that listens", func() bool {
			publish(port, "begin", "x")
			return strings.Contains(heard[i].String(), "begin x")
		})
	}
	publish(ports[0], "/NOR/bft", "from one")
	publish(ports[1], "far/away/PRT/bft", "from the other")
	publish(ports[1], "elsewhere", "nobody's business")
	count := func(i int, line string) int { return strings.Count(heard[i].String(), line+"\n") }
	eventually(t, "both messages", func() bool {
		return count(0, "PRT/bft from the other") > 0 && count(1, "far/away//NOR/bft from one") > 0
	})
	time.Sleep(100 * time.Millisecond)
	for i, lines := range [][]string{{"/NOR/bft from one", "PRT/bft from the other"}, {"far/away//NOR/bft from one", "far/away/PRT/bft from the other"}} {
		for _, line := range lines {
			if got := count(i, line); got != 1 {
				t.Errorf("broker %d gave %q %d times; want once, in\n%s", i, line, got, heard[i])
			}
		}
	}
	if strings.Contains(heard[0].String(), "elsewhere") {
		t.Errorf("a message without the prefix went through:\n%s", heard[0])
	}
}
