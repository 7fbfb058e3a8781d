// Package program is the command line of the traffic generator: one instance of a client, or a gateway, broker or mediator.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/traffic"
	"vignette.dev/vignette/internal/trafficconfig"
)

const usage = `traffic publishes messages, subscribes to them, or does both over one connection, and logs every event.

Usage:
  traffic --config FILE

FILE is JSON. The log of messages goes to the file named by the environment variable VIGNETTE_MESSAGE_LOG,
else to standard output. Messages are due at VIGNETTE_START_NS (nanoseconds since the Unix epoch; now without it)
+ firstAfterSeconds + k * periodSeconds. SIGTERM disconnects and ends; SIGUSR1 stops publishing only.

A publisher of NFFI tracks over MQTT 3.1.1:
  {"instance": "nor/bft", "protocol": "mqtt", "version": "3.1.1", "broker": "nor:1883",
   "country": "NOR", "unit": "NOR-UNIT001", "entity": "NOR-S001", "seed": 7,
   "publish": {"topic": "/NOR/NOR-UNIT001/NOR-S001/location", "qos": 0, "payload": "nffi", "periodSeconds": 10}}

A subscriber to everything, over MQTT 5, with metrics on port 9464:
  {"instance": "nor/picture", "protocol": "mqtt", "version": "5", "broker": "nor:1883", "metricsPort": 9464,
   "subscribe": {"topics": ["#"], "qos": 1}}

Both at once over MQTT/UDP:
  {"instance": "prt/bft/1", "protocol": "mqtt-udp", "broadcast": "198.18.9.255:1883", "interface": "wan",
   "country": "PRT", "unit": "PRT-UNIT001", "entity": "PRT-S003", "seed": 3,
   "publish": {"topic": "/PRT/PRT-UNIT001/PRT-S003/location", "payload": "geojson", "periodSeconds": 2},
   "subscribe": {"topics": ["#"]}}

Payloads: geojson (a position, about 225 bytes), geojson-ids, nffi (a track, 880 to 885 bytes), nffi-long (909 bytes), gps (a record of about 115 bytes), image:N (a PNG image of N
bytes, from 1024), bytes:N (N from 32), file:PATH (a file behind a line with the id).
`

// Server is a gateway, broker or mediator that runs with a configuration file until ctx ends.
type Server func(ctx context.Context, path string) error

// Main runs the command line. servers has the programs other than a client, by the word after `traffic`.
func Main(servers map[string]Server) {
	if len(os.Args) > 1 {
		if serve, ok := servers[os.Args[1]]; ok {
			os.Exit(runServer(os.Args[1], os.Args[2:], serve))
		}
	}
	// A run has hundreds of instances, each of which wakes for one message at a time. With one processor no other thread
	// wakes to look for work, which would cost a quarter of a message's total.
	runtime.GOMAXPROCS(1)
	flags := flag.NewFlagSet("traffic", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage) }
	path := flags.String("config", "", "configuration file")
	switch err := flags.Parse(os.Args[1:]); {
	case err == flag.ErrHelp:
		return
	case err != nil || *path == "" || flags.NArg() > 0:
		if err == nil {
			flags.Usage()
		}
		os.Exit(2)
	}
	if err := run(*path); err != nil {
		fmt.Fprintln(os.Stderr, "traffic:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	config, err := appinstance.ReadConfig[trafficconfig.Config](path)
	if err != nil {
		return err
	}
	log, err := messagelog.Open()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err = traffic.Run(ctx, config, log, appinstance.QuietOn(syscall.SIGUSR1), func(text string) {
		fmt.Fprintf(os.Stderr, "traffic %s: %s\n", config.Instance, text)
	})
	return errors.Join(err, log.Flush())
}

// runServer runs a gateway, broker or mediator, on all processors.
func runServer(name string, args []string, serve Server) int {
	flags := flag.NewFlagSet("traffic "+name, flag.ContinueOnError)
	path := flags.String("config", "", "configuration file")
	if err := flags.Parse(args); err != nil || *path == "" || flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "want traffic %s --config FILE\n", name)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx, *path); err != nil {
		fmt.Fprintf(os.Stderr, "traffic %s: %v\n", name, err)
		return 1
	}
	return 0
}
