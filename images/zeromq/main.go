// Program traffic-zeromq is the traffic generator with ZeroMQ, which needs the library libzmq, and with ZeroMQ's broker.
package main

import (
	"vignette.dev/vignette/internal/mediator"
	"vignette.dev/vignette/internal/traffic"
	"vignette.dev/vignette/internal/traffic/program"
	zeromqbroker "vignette.dev/vignette/internal/traffic/zeromq/broker"
	zeromq "vignette.dev/vignette/internal/traffic/zeromq/client"
)

func main() {
	traffic.Protocols["zeromq"] = zeromq.Open
	program.Main(map[string]program.Server{"zeromq-broker": zeromqbroker.Serve, "mediate": mediator.Serve})
}
