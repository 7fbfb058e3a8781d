package topology

import (
	"fmt"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkMulticast returns why a client cannot receive from a ZeroMQ broker by PGM. Multicast uses one network, and libzmq
// does not return it to the sending node.
func (t references) checkMulticast(client, broker Node, protocol v1alpha1.Protocol, to string) error {
	app, _ := t.BrokerAppOn(broker, protocol, to)
	if app.ZeroMQBroker == nil || app.ZeroMQBroker.Transport != v1alpha1.ZeroMQPGM {
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
	return nil
}
