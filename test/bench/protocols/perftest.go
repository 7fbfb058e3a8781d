package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/operators/apps"
)

// perfTestEnd matches perf-test's last output: the rate over its complete time in messages a second, and delays in microseconds.
var perfTestEnd = regexp.MustCompile(`(?s)receiving rate avg: (\d+) msg/s.*consumer latency min/median/75th/95th/99th \d+/(\d+)/\d+/\d+/(\d+) `)

// perfTest measures RabbitMQ's own load generator, which consumes without acknowledgements as our client does at QoS 0. Publisher and consumer
// are one process, whose processor time includes the start of Java's machine. It is therefore not reported.
func perfTest(b *bed, e entry) (line, error) {
	brokers, server, err := b.startBrokers(e.brokers)
	defer stopAll(brokers)
	if err != nil {
		return none(), err
	}
	calm, err := runPerfTest(server, b.calm, "--rate", strconv.Itoa(calmRate))
	if err != nil {
		return none(), err
	}
	before := total(brokers)
	load, err := runPerfTest(server, b.load)
	if err != nil {
		return none(), err
	}
	load.brokers = micros(total(brokers)-before, int(load.perSecond*b.load.Seconds()))
	load.median, load.p99 = calm.median, calm.p99
	return load, nil
}

// runPerfTest runs it against a broker, at full speed unless further arguments differ.
func runPerfTest(server apps.Server, lasting time.Duration, more ...string) (line, error) {
	arguments := append([]string{"-cp", filepath.Join(os.Getenv(jarsPath), "lib", "*"), "com.rabbitmq.perf.PerfTest", "--uri", "amqp://" + server.Address,
		"--exchange", "amq.topic", "--type", "topic", "--routing-key", ".PRT.PRT-UNIT001.PRT-S001.location", "--autoack",
		"--size", strconv.Itoa(messageBytes), "--time", strconv.Itoa(int(lasting.Seconds()))}, more...)
	out, err := exec.Command("java", arguments...).CombinedOutput()
	if err != nil {
		return none(), fmt.Errorf("%w: %s", err, out)
	}
	return readPerfTest(string(out))
}

// readPerfTest reads its output.
func readPerfTest(output string) (line, error) {
	found := perfTestEnd.FindStringSubmatch(output)
	if found == nil {
		return none(), fmt.Errorf("perf-test ends without %q: %s", strings.TrimSpace(perfTestEnd.String()), output)
	}
	var values [3]float64
	for i := range values {
		values[i], _ = strconv.ParseFloat(found[i+1], 64)
	}
	if values[0] == 0 {
		return none(), fmt.Errorf("perf-test has received nothing: %s", output)
	}
	l := none() // messages that are sent and not received are still in transit, not lost
	l.perSecond, l.median, l.p99 = values[0], values[1]/1e3, values[2]/1e3
	return l, nil
}
