package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/traffic"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// envTraffic has the configuration of the traffic instance that TestTrafficInAPod runs in a separate process.
const envTraffic = "VIGNETTE_TEST_TRAFFIC"

func TestTrafficInAPod(t *testing.T) {
	text := os.Getenv(envTraffic)
	if text == "" {
		t.Skip("is a part of another test")
	}
	var config trafficconfig.Config
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	log, err := messagelog.Open()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := traffic.Run(ctx, config, log, nil, func(text string) { fmt.Fprintln(os.Stderr, config.Instance, text) }); err != nil {
		t.Fatal(err)
	}
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
}

// runTraffic in a pod until stop is called; it writes the log.
func (p *pod) runTraffic(t *testing.T, config trafficconfig.Config) (log string, stop func()) {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(t.TempDir(), "messages.jsonl")
	c := exec.Command(os.Args[0], "-test.run=^TestTrafficInAPod$")
	c.Env, c.Stderr = append(os.Environ(), envTraffic+"="+string(text), messagelog.EnvPath+"="+log), os.Stderr
	p.do(t, c.Start)
	stop = func() {
		if c.ProcessState == nil {
			_ = c.Process.Signal(os.Interrupt)
			_ = c.Wait()
		}
	}
	t.Cleanup(stop)
	return log, stop
}

// timesOf a status in a log, by messages' ids; for periods the last one counts.
func timesOf(t *testing.T, log string, status messagelog.Status) map[string]time.Duration {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	times := map[string]time.Duration{}
	_, err = messagelog.Read(bufio.NewReader(file), func(r messagelog.Record) {
		if r.Status == status {
			times[r.ID] = time.Duration(r.TimeNanoseconds)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func TestAPublisherThatFollowsItsRadioWaitsLessThanOneThatDoesNot(t *testing.T) {
	m := newManager(t)
	offerQueues(t, m)
	n := networkOf("run", "wan", "pod-1", "pod-2", "pod-3")
	rate := v1alpha1.DataRate("64kbit") // 14 messages of 500 bytes a second, for 50 that are wanted
	n.Spec.Waveform.Link = &v1alpha1.LinkModel{Rate: &rate, Delay: "1ms", Loss: "0%", Limit: 1000}
	if err := m.SetNetwork(n); err != nil {
		t.Fatal(err)
	}
	var pods []*pod
	for i := range 3 {
		p := newPod(t, fmt.Sprintf("pod-%d", i+1))
		p.attach(t, m, "wan")
		pods = append(pods, p)
	}
	eventually(t, "they are answered", func() bool { return pods[0].asks(t) >= 0 && pods[1].asks(t) >= 0 })
	client := func(name string) trafficconfig.Config {
		return trafficconfig.Config{Instance: name, Protocol: "mqtt-udp", Broadcast: "198.18.9.255:1883", Interface: "wan", Entity: name, Seed: 1}
	}
	publisher := func(name string, adapt *trafficconfig.AdaptRate) trafficconfig.Config {
		c := client(name)
		c.Publish = &trafficconfig.Publish{Topic: name, Payload: "bytes:500", PeriodSeconds: 0.02, AdaptRate: adapt, FirstAfterSeconds: 0.5}
		return c
	}
	listener := client("listener")
	listener.Subscribe = &trafficconfig.Subscribe{Topics: []string{"#"}}
	heard, stopListener := pods[2].runTraffic(t, listener)
	fixed, stopFixed := pods[0].runTraffic(t, publisher("fixed", nil))
	adapting, stopAdapting := pods[1].runTraffic(t, publisher("adapting", &trafficconfig.AdaptRate{HighFrames: 4, LowFrames: 1, MaxPeriodSeconds: 1}))
	eventually(t, "all three write their logs", func() bool {
		for _, log := range []string{heard, fixed, adapting} {
			if _, err := os.Stat(log); err != nil {
				return false
			}
		}
		return true
	})
	most := [2]int{}
	for begin := time.Now(); time.Since(begin) < 4*time.Second; time.Sleep(100 * time.Millisecond) {
		for i := range most {
			most[i] = max(most[i], pods[i].asks(t))
		}
	}
	stopFixed()
	stopAdapting()
	stopListener()
	received := timesOf(t, heard, messagelog.Received)
	worst := func(log string) (worst time.Duration) {
		for id, sent := range timesOf(t, log, messagelog.Sent) {
			if at, ok := received[id]; ok {
				worst = max(worst, at-sent)
			}
		}
		return worst
	}
	t.Logf("frames that waited, at most: fixed %d, adapting %d; longest delay %v and %v", most[0], most[1], worst(fixed), worst(adapting))
	if most[0] < 40 || most[1] > most[0]/2 || worst(adapting) == 0 || worst(adapting) > worst(fixed)*2/3 {
		t.Error("want a long queue at the fixed one, and half of it and a third less delay at the adapting one")
	}
	if len(timesOf(t, adapting, messagelog.Period)) == 0 {
		t.Error("the log has no change of the period")
	}
	if changes := timesOf(t, fixed, messagelog.Period); len(changes) != 0 {
		t.Errorf("the fixed one changed its period: %v", changes)
	}
}
