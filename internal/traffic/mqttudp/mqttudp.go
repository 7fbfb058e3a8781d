// Package mqttudp describes MQTT/UDP to all programs. Its client is in its folder.
package mqttudp

import "vignette.dev/vignette/internal/traffic/protocol"

// Protocol has MQTT's port. A message is one datagram.
var Protocol = protocol.Protocol{Name: "mqtt-udp", Broadcast: true, Port: 1883, UDP: true, MaxPayloadBytes: 65_000}

// Remembered is how many of a sender's last packet numbers a receiver knows. A repeat that comes after so many others would count again.
const Remembered = 1024
