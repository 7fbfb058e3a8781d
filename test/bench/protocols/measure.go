package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/traffic"
)

// line is a line of the table. Missing measurements are NaN.
type line struct {
	// skipped is the reason without a measurement.
	skipped string
	// perSecond is the rate of received messages, or of sent ones without a receiver; lost is the share of those sent.
	perSecond, lostPercent float64
	// Processor time for each message, in microseconds: at the publisher for sent ones, else for received ones.
	publisher, brokers, subscriber float64
	// Delays at calmRate, in milliseconds.
	median, p99 float64
}

func none() line {
	n := math.NaN()
	return line{perSecond: n, lostPercent: n, publisher: n, brokers: n, subscriber: n, median: n, p99: n}
}

// client is an entry's client: a publisher with a rate, or a subscriber.
func client(e entry, server apps.Server, rate int) apps.Rendering {
	app := v1alpha1.App{Name: "sub", Subscriber: &v1alpha1.Subscriber{Protocol: e.protocol, Version: e.version, QoS: v1alpha1.QoS(e.qos), Topics: []string{"/PRT/#"}}}
	if rate > 0 {
		app = v1alpha1.App{Name: "pub", Publisher: &v1alpha1.Publisher{Protocol: e.protocol, Version: e.version, QoS: v1alpha1.PublishQoS(e.qos), Topic: "/{country}/{unit}/{entity}/location",
			Pattern: &v1alpha1.Pattern{}, Lead: "1s"}}
	}
	s := site(app)
	s.Broker = server
	s.Pattern = fmt.Sprintf("0 ON 1 UDP DST 127.0.0.1/5000 PERIODIC [%d %d]", rate, messageBytes)
	if trafficconfig.ProtocolOf(e.protocol).Broadcast {
		s.Broadcast, s.Interface = fmt.Sprintf("127.255.255.255:%d", apps.Port(e.protocol, v1alpha1.App{})), "lo"
	}
	return traffic.Kind{}.Render(s)
}

// through measures an entry with its brokers: first the low rate, then the load.
func through(b *bed, e entry) (line, error) {
	brokers, server, err := b.startBrokers(e.brokers)
	defer stopAll(brokers)
	if err != nil {
		return none(), err
	}
	time.Sleep(time.Second) // the broker's start after it listens
	calm, err := b.transfer(e, server, brokers, calmRate, b.calm)
	if err != nil {
		return none(), err
	}
	load, err := b.transfer(e, server, brokers, askedRate, b.load)
	load.median, load.p99 = calm.median, calm.p99
	return load, err
}

// transfer transfers messages for a while.
func (b *bed) transfer(e entry, server apps.Server, brokers []*process, rate int, lasting time.Duration) (line, error) {
	subscriber, err := b.start(client(e, server, 0))
	if err != nil {
		return none(), err
	}
	defer subscriber.stop()
	if err := subscriber.logs(messagelog.Connected); err != nil {
		return none(), err
	}
	time.Sleep(time.Second) // for the subscription
	before := total(brokers)
	publisher, err := b.start(client(e, server, rate))
	if err != nil {
		return none(), err
	}
	defer publisher.stop()
	if err := publisher.logs(messagelog.Sent); err != nil {
		return none(), err
	}
	time.Sleep(lasting)
	_ = publisher.Process.Signal(syscall.SIGUSR1) // no more messages
	subscriber.settle()
	at, sub, pub := total(brokers), cpu(subscriber), cpu(publisher)
	publisher.stop()
	subscriber.stop()
	sent, received := read(publisher.log, messagelog.Sent), read(subscriber.log, messagelog.Received)
	if len(received) < 2 {
		return none(), fmt.Errorf("%d sent, %d received; publisher: %s; subscriber: %s", len(sent), len(received), publisher.output, subscriber.output)
	}
	l := none()
	l.perSecond = rateOf(received)
	l.lostPercent = 100 * (1 - float64(len(received))/float64(len(sent)))
	l.publisher, l.subscriber = micros(pub, len(sent)), micros(sub, len(received))
	if len(brokers) > 0 {
		l.brokers = micros(at-before, len(received))
	}
	l.median, l.p99 = delays(sent, received)
	return l, nil
}

// logs waits for the first record of a status.
func (p *process) logs(status messagelog.Status) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if text, err := os.ReadFile(p.log); err == nil && strings.Contains(string(text), `"`+string(status)+`"`) {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("client ended: %s", p.output)
		default:
		}
	}
	return fmt.Errorf("client logs no %s within a minute: %s", status, p.output)
}

// settle waits until a subscriber has received nothing for a second.
func (p *process) settle() {
	const most = 30 * time.Second
	size := int64(-1)
	for deadline := time.Now().Add(most); time.Now().Before(deadline); {
		info, err := os.Stat(p.log)
		if err != nil || info.Size() == size {
			return
		}
		size = info.Size()
		time.Sleep(time.Second)
	}
}

func total(processes []*process) (sum time.Duration) {
	for _, p := range processes {
		sum += cpu(p)
	}
	return sum
}

// read reads the times of a log's messages by their ids.
func read(path string, status messagelog.Status) map[string]int64 {
	times := map[string]int64{}
	f, err := os.Open(path)
	if err != nil {
		return times
	}
	defer f.Close()
	_, _ = messagelog.Read(bufio.NewReader(f), func(r messagelog.Record) {
		if _, again := times[r.ID]; r.Status == status && !again {
			times[r.ID] = r.TimeNanoseconds
		}
	})
	return times
}

// rateOf returns the rate of messages, from the first to the last.
func rateOf(times map[string]int64) float64 {
	first, last := int64(math.MaxInt64), int64(0)
	for _, at := range times {
		first, last = min(first, at), max(last, at)
	}
	return float64(len(times)-1) / (float64(last-first) / 1e9)
}

func micros(d time.Duration, messages int) float64 {
	return float64(d.Nanoseconds()) / 1e3 / float64(messages)
}

// delays returns them in milliseconds.
func delays(sent, received map[string]int64) (median, p99 float64) {
	var all []float64
	for id, at := range received {
		if from, ok := sent[id]; ok {
			all = append(all, float64(at-from)/1e6)
		}
	}
	slices.Sort(all)
	return quantile(all, 0.5), quantile(all, 0.99)
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

// sink measures a publisher alone: the server accepts it and reads.
func sink(b *bed, e entry) (line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:1883")
	if err != nil {
		return none(), err
	}
	defer listener.Close()
	answer := "\x20\x02\x00\x00"
	if e.version == mqtt5 {
		answer = "\x20\x03\x00\x00\x00"
	}
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096)) // CONNECT
		_, _ = io.WriteString(conn, answer)
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, 1<<20))
	}()
	publisher, err := b.start(client(e, apps.Server{Address: listener.Addr().String()}, askedRate))
	if err != nil {
		return none(), err
	}
	defer publisher.stop()
	if err := publisher.logs(messagelog.Sent); err != nil {
		return none(), err
	}
	time.Sleep(b.load)
	spent := cpu(publisher)
	publisher.stop()
	sent := read(publisher.log, messagelog.Sent)
	l := none()
	l.perSecond, l.publisher = rateOf(sent), micros(spent, len(sent))
	return l, nil
}

// known measures mosquitto_pub and mosquitto_sub with lines of a file.
func known(b *bed, e entry) (line, error) {
	brokers, _, err := b.startBrokers(e.brokers)
	defer stopAll(brokers)
	if err != nil {
		return none(), err
	}
	path := filepath.Join(b.dir, "lines")
	if err := os.WriteFile(path, []byte(strings.Repeat(strings.Repeat("x", messageBytes)+"\n", b.known)), 0o600); err != nil {
		return none(), err
	}
	lines, err := os.Open(path)
	if err != nil {
		return none(), err
	}
	defer lines.Close()
	sub := exec.Command("mosquitto_sub", "-t", "/PRT/#", "-C", fmt.Sprint(b.known), "-W", "120")
	pub := exec.Command("mosquitto_pub", "-t", "/PRT/PRT-UNIT001/PRT-S001/location", "-l")
	pub.Stdin = lines
	if err := sub.Start(); err != nil {
		return none(), err
	}
	time.Sleep(time.Second) // for the subscription
	before, start := total(brokers), time.Now()
	if err := pub.Run(); err != nil {
		return none(), fmt.Errorf("mosquitto_pub: %w", err)
	}
	if err := sub.Wait(); err != nil {
		return none(), fmt.Errorf("mosquitto_sub: %w", err)
	}
	took := time.Since(start)
	spent := func(c *exec.Cmd) float64 {
		return micros(c.ProcessState.UserTime()+c.ProcessState.SystemTime(), b.known)
	}
	l := none()
	l.perSecond, l.lostPercent = float64(b.known)/took.Seconds(), 0
	l.publisher, l.subscriber, l.brokers = spent(pub), spent(sub), micros(total(brokers)-before, b.known)
	return l, nil
}
