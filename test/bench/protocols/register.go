package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/mosquitto"
	"vignette.dev/vignette/operators/apps/mqttsngateway"
	"vignette.dev/vignette/operators/apps/prosody"
	"vignette.dev/vignette/operators/apps/rabbitmq"
	"vignette.dev/vignette/operators/apps/wsnbroker"
	"vignette.dev/vignette/operators/apps/zeromqbroker"
)

// entry is one line of the table.
type entry struct {
	name string
	// client is the protocol of its clients.
	protocol v1alpha1.Protocol
	version  v1alpha1.MQTTVersion
	qos      int
	// brokers start one after the other. Each is the server of the next one, and the last one the clients'.
	brokers []broker
	// needs are the required external programs and files.
	needs   []string
	measure func(*bed, entry) (line, error)
	// tool: the other entries are compared with this one.
	tool bool
	// jars: it needs perf-test's jars.
	jars bool
}

// broker is a broker of an experiment.
type broker struct {
	kind apps.Kind
	app  v1alpha1.App
	// protocol is that of the port that shows its readiness; none over TCP for UDP.
	protocol v1alpha1.Protocol
	udp      bool
}

var (
	mosquittoBroker = broker{kind: mosquitto.Kind{}, app: v1alpha1.App{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}}, protocol: v1alpha1.ProtocolMQTT}
	gateway         = broker{kind: mqttsngateway.Kind{}, protocol: v1alpha1.ProtocolMQTTSN, udp: true,
		app: v1alpha1.App{Name: "gateway", MQTTSNGateway: &v1alpha1.MQTTSNGateway{Mode: v1alpha1.GatewayTransparent, MaxClients: 256}}}
	zeroMQ    = broker{kind: zeromqbroker.Kind{}, app: v1alpha1.App{Name: "broker", ZeroMQBroker: &v1alpha1.ZeroMQBroker{Transport: v1alpha1.ZeroMQTCP}}, protocol: v1alpha1.ProtocolZeroMQ}
	xmpp      = broker{kind: prosody.Kind{}, app: v1alpha1.App{Name: "broker", Prosody: &v1alpha1.Prosody{}}, protocol: v1alpha1.ProtocolXMPP}
	wsn       = broker{kind: wsnbroker.Kind{}, app: v1alpha1.App{Name: "broker", WSNBroker: &v1alpha1.WSNBroker{Implementation: v1alpha1.WSNVignette}}, protocol: v1alpha1.ProtocolWSN}
	libzmq    = "/usr/lib/x86_64-linux-gnu/libzmq.so.5"
	mosquitoP = "/usr/sbin/mosquitto"
)

// Versions of MQTT.
const (
	mqtt311 v1alpha1.MQTTVersion = "3.1.1"
	mqtt5   v1alpha1.MQTTVersion = "5"
)

// rabbit returns the RabbitMQ broker of a protocol.
func rabbit(protocol v1alpha1.Protocol) broker {
	return broker{kind: rabbitmq.Kind{}, app: v1alpha1.App{Name: "broker", RabbitMQ: &v1alpha1.RabbitMQ{}}, protocol: protocol}
}

// register has all measurements: one entry for each protocol and broker, after the known tool, the base of the ratios.
var register = []entry{
	{name: "mosquitto_pub, mosquitto_sub, Mosquitto, QoS 0", brokers: []broker{mosquittoBroker}, needs: []string{mosquitoP, "mosquitto_pub", "mosquitto_sub"}, measure: known, tool: true},
	{name: "MQTT 3.1.1 QoS 0 to a server that only reads", protocol: v1alpha1.ProtocolMQTT, version: mqtt311, measure: sink},
	{name: "MQTT 5 QoS 0 to a server that only reads", protocol: v1alpha1.ProtocolMQTT, version: mqtt5, measure: sink},
	mqtt("MQTT 3.1.1 QoS 0, Mosquitto", mqtt311, 0, mosquittoBroker, mosquitoP),
	mqtt("MQTT 3.1.1 QoS 1, Mosquitto", mqtt311, 1, mosquittoBroker, mosquitoP),
	mqtt("MQTT 3.1.1 QoS 2, Mosquitto", mqtt311, 2, mosquittoBroker, mosquitoP),
	mqtt("MQTT 5 QoS 0, Mosquitto", mqtt5, 0, mosquittoBroker, mosquitoP),
	mqtt("MQTT 5 QoS 1, Mosquitto", mqtt5, 1, mosquittoBroker, mosquitoP),
	mqtt("MQTT 3.1.1 QoS 0, RabbitMQ", mqtt311, 0, rabbit(v1alpha1.ProtocolMQTT), "rabbitmq-server"),
	{name: "MQTT/UDP", protocol: v1alpha1.ProtocolMQTTUDP, measure: through},
	{name: "MQTT-SN QoS 0, our gateway, Mosquitto", protocol: v1alpha1.ProtocolMQTTSN, brokers: []broker{mosquittoBroker, gateway}, needs: []string{mosquitoP}, measure: through},
	{name: "MQTT-SN QoS 1, our gateway, Mosquitto", protocol: v1alpha1.ProtocolMQTTSN, qos: 1, brokers: []broker{mosquittoBroker, gateway}, needs: []string{mosquitoP}, measure: through},
	{name: "AMQP 0-9-1, RabbitMQ", protocol: v1alpha1.ProtocolAMQP, brokers: []broker{rabbit(v1alpha1.ProtocolAMQP)}, needs: []string{"rabbitmq-server"}, measure: through},
	{name: "STOMP 1.2, RabbitMQ", protocol: v1alpha1.ProtocolSTOMP, brokers: []broker{rabbit(v1alpha1.ProtocolSTOMP)}, needs: []string{"rabbitmq-server"}, measure: through},
	{name: "RabbitMQ's perf-test, AMQP 0-9-1, RabbitMQ", brokers: []broker{rabbit(v1alpha1.ProtocolAMQP)}, needs: []string{"rabbitmq-server", "java"}, jars: true, measure: perfTest},
	{name: "XMPP, Prosody", protocol: v1alpha1.ProtocolXMPP, brokers: []broker{xmpp}, needs: []string{"prosodyctl"}, measure: through},
	{name: "ZeroMQ over TCP, our broker", protocol: v1alpha1.ProtocolZeroMQ, brokers: []broker{zeroMQ}, needs: []string{libzmq}, measure: through},
	{name: "WS-Notification, our broker", protocol: v1alpha1.ProtocolWSN, brokers: []broker{wsn}, measure: through},
}

func mqtt(name string, version v1alpha1.MQTTVersion, qos int, b broker, needs string) entry {
	return entry{name: name, protocol: v1alpha1.ProtocolMQTT, version: version, qos: qos, brokers: []broker{b}, needs: []string{needs}, measure: through}
}

// missing returns what is not installed, if anything.
func (e entry) missing() string {
	for _, need := range e.needs {
		if filepath.IsAbs(need) {
			if _, err := os.Stat(need); err != nil {
				return need + " is not installed"
			}
		} else if _, err := exec.LookPath(need); err != nil {
			return need + " is not installed"
		}
	}
	if e.jars && os.Getenv(jarsPath) == "" {
		return "its jars cannot be fetched (hack/jars)"
	}
	for _, b := range e.brokers {
		if r := b.kind.Render(b.site(apps.Server{})); r.Instances[0].Command[0] == "/bin/false" {
			return "the kind " + b.kind.Name() + " runs nothing yet"
		}
	}
	return ""
}
