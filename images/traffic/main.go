// Program traffic is one instance of the traffic generator; see package internal/traffic.
package main

import (
	"vignette.dev/vignette/internal/mediator"
	"vignette.dev/vignette/internal/messaging"
	"vignette.dev/vignette/internal/proxy"
	mqttsngateway "vignette.dev/vignette/internal/traffic/mqttsn/gateway"
	"vignette.dev/vignette/internal/traffic/program"
	wsnbroker "vignette.dev/vignette/internal/traffic/wsn/broker"
)

// servers are what the program can be beside a client: the word after `traffic`, and what runs with the configuration file until ctx ends.
var servers = map[string]program.Server{
	"mqtt-sn-gateway": mqttsngateway.Serve, "mediate": mediator.Serve, "messaging": messaging.Serve,
	"proxy": proxy.Serve, "wsn-broker": wsnbroker.Serve,
}

func main() {
	program.Main(servers)
}
