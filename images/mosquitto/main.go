// Program mosquitto-statistics serves a Mosquitto's statistics below $SYS/broker (mosquitto(8), "Broker status") in Prometheus' format. It
// is an MQTT 3.1.1 client of the broker with QoS 0, and counts as one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	runtime.GOMAXPROCS(1) // it is idle
	path := flag.String("config", "", "configuration file, as the traffic generator's for a subscriber")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx, *path); err != nil {
		fmt.Fprintln(os.Stderr, "mosquitto-statistics:", err)
		os.Exit(1)
	}
}
