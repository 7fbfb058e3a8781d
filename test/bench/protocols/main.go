// protocols measures the traffic generator's performance with each protocol on loopback, with the experiments' broker and its rendered
// configuration: the highest rate of messages; processor time for each message at publisher, broker and
// subscriber; and delays at a low rate. In the same run it measures for comparison: the generator with a server that only reads, mosquitto_pub
// and mosquitto_sub with the same broker, and RabbitMQ's perf-test. Messages have 255 bytes. It needs root, for its own network namespace,
// in which brokers have their usual ports, and a quiet machine. It prints each line as soon as it is measured, all of them in about ten
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

// scale is the scale of the measurements.
type scale struct {
	// load is the duration of the load. Calm messages are sent at calmRate a second for the delays.
	load, calm time.Duration
	// known is the number of messages of the known tool.
	known int
}

const (
	messageBytes = 255
	// askedRate is the requested rate, higher than any of them reaches.
	askedRate = 100_000
	calmRate  = 200
)

// inside: the program is in its own network namespace.
const inside = "VIGNETTE_BENCH_INSIDE"

// jarsPath is the path of perf-test's jars for the program in the namespace.
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

// enter runs the program again in a network namespace with only loopback, and a process namespace, which ends all of the brokers' processes.
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

// jars returns the folder with perf-test's jars, downloaded if there is a network; empty if missing or not needed.
func jars(only string) string {
	if !slices.ContainsFunc(register, func(e entry) bool { return e.jars && e.matches(only) }) {
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
	if !slices.ContainsFunc(register, func(e entry) bool { return e.matches(only) }) {
		return fmt.Errorf("-only %s: no protocol has this in its name", only)
	}
	b, err := newBed(s)
	if err != nil {
		return err
	}
	defer b.close()
	t := newTable(os.Stdout)
	for _, e := range register {
		if e.matches(only) {
			t.print(e, e.line(b))
		}
	}
	return nil
}

// matches reports whether an entry's name has the words of -only, in either case.
func (e entry) matches(only string) bool {
	return strings.Contains(strings.ToLower(e.name), strings.ToLower(only))
}

// line returns an entry's line, measured or skipped with the reason.
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

// excerpt returns the end of a program's output, in one line.
func excerpt(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = text[:most/3] + " … " + text[len(text)-most:]
	}
	return text
}
