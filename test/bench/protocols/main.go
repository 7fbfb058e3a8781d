// protocols measures what the traffic generator makes of each protocol on loopback, with the broker that experiments run and its rendered
// configuration: messages a second when as many are asked for as there is room for, processor time for each message at publisher, broker and
// subscriber, and delays at a rate that nobody is busy with. In the same run: the generator against a server that only reads, mosquitto_pub
// and mosquitto_sub through the same broker, and RabbitMQ's perf-test. Messages have 255 bytes. It needs root, for a network namespace of its
// own in which brokers have their usual ports, and a quiet machine. A line is printed as soon as it is measured, all of them in about ten
// minutes.
//
//	go run ./test/bench/protocols [-quick] [-only NAME]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// scale of the measurements.
type scale struct {
	// load lasts so long; calm messages are sent at calmRate a second for the delays.
	load, calm time.Duration
	// known messages are sent with the known tool.
	known int
}

const (
	messageBytes = 255
	// askedRate is more messages a second than any of them makes.
	askedRate = 100_000
	calmRate  = 200
)

// inside tells that the program is in its own network namespace.
const inside = "VIGNETTE_BENCH_INSIDE"

// jarsPath tells the program in there where perf-test's jars are.
const jarsPath = "VIGNETTE_BENCH_JARS"

func main() {
	quick := flag.Bool("quick", false, "measure for a second each only")
	only := flag.String("only", "", "measure only what has this in its name")
	flag.Parse()
	s := scale{load: 5 * time.Second, calm: 10 * time.Second, known: 300_000}
	if *quick {
		s = scale{load: time.Second, calm: 2 * time.Second, known: 50_000}
	}
	run := func() error { return enter(*only) }
	if os.Getenv(inside) != "" {
		run = func() error { return bench(s, *only) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// enter runs the program again in a network namespace that has nothing but loopback, and one of processes, which ends what brokers leave behind.
func enter(only string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root: a network namespace of its own, so that brokers have their usual ports")
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command("unshare", append([]string{"--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--", "sh", "-c", `ip link set lo up && exec "$@"`, "sh", program}, os.Args[1:]...)...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = append(os.Environ(), inside+"=1", jarsPath+"="+jars(only)), os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}

// jars is the folder with perf-test's, fetched where there is a network; none where they cannot be had or are not needed.
func jars(only string) string {
	if !slices.ContainsFunc(register, func(e entry) bool { return e.jars && strings.Contains(e.name, only) }) {
		return ""
	}
	fetch := exec.Command("hack/jars", "test/bench/protocols/perf-test.xml")
	fetch.Stderr = os.Stderr
	out, err := fetch.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: hack/jars:", err)
	}
	return strings.TrimSpace(string(out))
}

func bench(s scale, only string) error {
	b, err := newBed(s)
	if err != nil {
		return err
	}
	defer b.close()
	t := newTable(os.Stdout)
	for _, e := range register {
		if strings.Contains(e.name, only) {
			t.print(e, e.line(b))
		}
	}
	return nil
}

// line of an entry, measured or skipped with the reason.
func (e entry) line(b *bed) line {
	if why := e.missing(); why != "" {
		return line{skipped: why}
	}
	measured, err := e.measure(b, e)
	if err != nil {
		measured.skipped = "failed: " + excerpt(err.Error())
	}
	return measured
}

// excerpt is the end of what a program said, in one line.
func excerpt(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = text[:most/3] + " … " + text[len(text)-most:]
	}
	return text
}
