package topology

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkMulticast returns why a client cannot receive from a ZeroMQ broker by PGM. Multicast uses one network, and libzmq
// does not return it to the sending node.
func (t references) checkMulticast(client, broker Node, protocol v1alpha1.Protocol, to string) error {
	app, _ := t.BrokerAppOn(broker, protocol, to)
	if !app.ZeroMQBroker.Multicast() {
		return nil
	}
	if len(broker.Attachments) == 0 {
		return fmt.Errorf("node %s is on no network, over which broker %q could send by PGM", broker.Name, app.Name)
	}
	if client.Name == broker.Name {
		return fmt.Errorf("node %s has broker %q, and ZeroMQ's PGM does not reach the sending node: put the client on another node", client.Name, app.Name)
	}
	network := broker.Attachments[0].Network
	if _, ok := client.Address(network); !ok {
		return fmt.Errorf("node %s is not on network %q: broker %q sends by PGM over the first network of its node %s", client.Name, network, app.Name, broker.Name)
	}
	if app.ZeroMQBroker.RawSockets() && !client.IsVM() {
		return fmt.Errorf("broker %q uses transport %s, and %s", app.Name, app.ZeroMQBroker.Transport, withoutRawSockets(client))
	}
	return nil
}

// checkRawSockets refuses a broker by raw sockets on a node that may open none.
func checkRawSockets(broker v1alpha1.App, node Node, path *field.Path) field.ErrorList {
	if !broker.ZeroMQBroker.RawSockets() || node.IsVM() {
		return nil
	}
	return field.ErrorList{field.Invalid(path, broker.ZeroMQBroker.Transport, withoutRawSockets(node))}
}

// withoutRawSockets says why a pod opens no raw sockets, and what to do. No pod of a node has a capability.
func withoutRawSockets(node Node) string {
	return fmt.Sprintf("node %s is a pod, which may not open raw sockets (NET_RAW): make it a virtual machine (runtime: vm), or use transport %s, which is PGM in UDP",
		node.Name, v1alpha1.ZeroMQPGM)
}

// checkTCPOnly refuses a ZeroMQ broker by PGM for a client that wants TCP; reason says why it does.
func (t references) checkTCPOnly(client Node, protocol v1alpha1.Protocol, to, reason string, path *field.Path) field.ErrorList {
	broker, err := t.Broker(client, protocol, to)
	if err != nil {
		return nil // found already
	}
	app, _ := t.BrokerAppOn(broker, protocol, to)
	if !app.ZeroMQBroker.Multicast() {
		return nil
	}
	return field.ErrorList{field.Invalid(path, to, fmt.Sprintf("broker %q uses transport %s, and %s: use a broker with transport %s",
		app.Name, app.ZeroMQBroker.Transport, reason, v1alpha1.ZeroMQTCP))}
}
