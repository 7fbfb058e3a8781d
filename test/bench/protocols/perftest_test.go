package main

import (
	"strings"
	"testing"
)

const perfTestSays = `id: test-1, time 1.003 s, sent: 34810 msg/s, received: 100 msg/s, min/median/75th/95th/99th consumer latency: 1/2/3/4/5 µs
test stopped (Reached time limit)
id: test-1, sending rate avg: 10000 msg/s
id: test-1, receiving rate avg: 9900 msg/s
id: test-1, consumer latency min/median/75th/95th/99th 301/10219/18787/58226/60809 µs
`

func TestPerfTestsLastLinesAreRead(t *testing.T) {
	l, err := readPerfTest(perfTestSays)
	if err != nil {
		t.Fatal(err)
	}
	if l.perSecond != 9900 || l.median != 10.219 || l.p99 != 60.809 {
		t.Errorf("%+v", l)
	}
}

func TestPerfTestsOutputWithoutMessagesIsAnError(t *testing.T) {
	for name, output := range map[string]string{
		"nothing received": strings.ReplaceAll(perfTestSays, "9900", "0"),
		"cut off":          strings.Join(strings.Split(perfTestSays, "\n")[:3], "\n"),
	} {
		if _, err := readPerfTest(output); err == nil || !strings.Contains(err.Error(), "perf-test") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
