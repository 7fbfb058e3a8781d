// Program mosquitto-statistics serves a Mosquitto's statistics to Prometheus; see package internal/mosquittostats.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"vignette.dev/vignette/internal/mosquittostats"
)

func main() {
	runtime.GOMAXPROCS(1) // it is idle
	path := flag.String("config", "", "configuration file, as the traffic generator's for a subscriber")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := mosquittostats.Serve(ctx, *path); err != nil {
		fmt.Fprintln(os.Stderr, "mosquitto-statistics:", err)
		os.Exit(1)
	}
}
