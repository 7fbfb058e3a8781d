package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// emaneTimeout of a request to a control port, by way of the API server.
const emaneTimeout = 20 * time.Second

// emaneShell answers questions about the EMANE process of a node, from its control port: one command, or those that are typed.
func (c *cluster) emaneShell(ctx context.Context, place shellPlace, platform string, command []string, s streams) error {
	site, err := c.runningExperiment(ctx, place.experiment, "vignette shell --emane "+place.node)
	if err != nil {
		return err
	}
	node, err := site.node(place.node)
	if err != nil {
		return err
	}
	network, err := site.emaneNetwork(node, place.network)
	if err != nil {
		return err
	}
	pod, port, err := c.emaneProcess(ctx, site, node, network, platform)
	if err != nil {
		return err
	}
	return untilInterrupt(ctx, func() error {
		connection, err := c.forward(pod, port)
		if err != nil {
			return explainEMANE(err, platform)
		}
		control := emane.NewControl(connection, emaneTimeout)
		defer control.Close()
		return site.explainControl(talkToEMANE(control, node.Name+"/"+network, command, s), node.Name, pod)
	})
}

// talkToEMANE carries out a command, or those that are typed. radio is the node and its network.
func talkToEMANE(control *emane.Control, radio string, command []string, s streams) error {
	shell, err := emane.NewShell(control)
	if err != nil {
		return err
	}
	if len(command) > 0 {
		return shell.Command(s.out, command...)
	}
	prompt := ""
	if terminalOf(s) != nil {
		fmt.Fprint(s.err, emane.ShellHelp)
		prompt = fmt.Sprintf("emane %s> ", radio)
	}
	return shell.Run(s.in, s.out, prompt)
}

// explainControl names the process, and says what its end or silence means. Wrong commands say enough.
func (s *expandedExperiment) explainControl(err error, node string, pod client.ObjectKey) error {
	switch {
	case err == nil || errors.As(err, new(emane.Misuse)):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return fmt.Errorf("EMANE's process of node %s in pod %s ended: vignette status -n %s %s shows why", node, pod, s.Namespace, s.Name)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("EMANE's process of node %s in pod %s has not answered for %s: vignette status -n %s %s shows whether it runs", node, pod, emaneTimeout, s.Namespace, s.Name)
	}
	return fmt.Errorf("EMANE's process of node %s in pod %s: %w", node, pod, err)
}

// emaneNetworks are the node's networks that EMANE carries.
func (s *expandedExperiment) emaneNetworks(node topology.Node) (names []string) {
	for _, network := range s.Spec.Networks {
		if _, on := node.Address(network.Name); on && network.Engine == v1alpha1.EngineEMANE {
			names = append(names, network.Name)
		}
	}
	return names
}

// emaneNames are the nodes for which EMANE has a process.
func (s *expandedExperiment) emaneNames() []string {
	return s.namesOf(func(node topology.Node) bool { return len(s.emaneNetworks(node)) > 0 })
}

// emaneNetworksOf the node of the first argument, or of all nodes.
func (s *expandedExperiment) emaneNetworksOf(args []string) (names []string) {
	if len(args) > 0 {
		if node, found := s.Topology.Node(args[0]); found {
			return s.emaneNetworks(node)
		}
	}
	for _, network := range s.Spec.Networks {
		if network.Engine == v1alpha1.EngineEMANE {
			names = append(names, network.Name)
		}
	}
	return names
}

// emaneNetwork is the node's network that EMANE carries: the one of that name, or the only one.
func (s *expandedExperiment) emaneNetwork(node topology.Node, name string) (string, error) {
	all := s.emaneNetworks(node)
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("node %s of experiment %s is on no network with engine emane: EMANE has no process for it", node.Name, s.Name)
	case name == "" && len(all) > 1:
		return "", fmt.Errorf("node %s has several networks with engine emane: choose one with --network (%s)", node.Name, listNames(all))
	case name == "":
		return all[0], nil
	case !slices.Contains(all, name):
		return "", fmt.Errorf("--network %s: want a network of node %s with engine emane (%s)", name, node.Name, listNames(all))
	}
	return name, nil
}

// emaneProcess finds the pod with a node's EMANE process, and the process's control port.
func (c *cluster) emaneProcess(ctx context.Context, s *expandedExperiment, node topology.Node, network, platform string) (pod client.ObjectKey, port int, err error) {
	radios := &v1alpha1.RadioNetwork{}
	if err := c.kube.Get(ctx, client.ObjectKey{Namespace: platform, Name: render.RadioNetworkName(s.Experiment, network)}, radios); err != nil {
		return pod, 0, explainEMANE(err, platform)
	}
	i := slices.IndexFunc(radios.Spec.Members, func(m v1alpha1.Member) bool { return m.Node == node.Name })
	if i < 0 {
		return pod, 0, fmt.Errorf("RadioNetwork %s has no member %s", radios.Name, node.Name)
	}
	nem := radios.Spec.Members[i].NEM
	at := slices.IndexFunc(radios.Status.Hosts, func(h v1alpha1.RadioNetworkHost) bool { return slices.Contains(h.NEMs, nem) })
	if at < 0 {
		return pod, 0, fmt.Errorf("no host has the radio of node %[1]s on network %[2]s: vignette status -n %[3]s %[4]s shows why", node.Name, network, s.Namespace, s.Name)
	}
	pod = client.ObjectKey{Namespace: platform, Name: render.EMANEPodName(radios.Name, radios.Status.Hosts[at].Host)}
	return pod, int(emane.InPod(radios, nem).Control.Port()), nil
}

// explainEMANE says who may reach EMANE: its control port has no authentication, and its pods are the platform's.
func explainEMANE(err error, platform string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: EMANE's shell is for administrators, who may get radionetworks and create pods/portforward in namespace %s", err, platform)
	}
	return explain(err)
}

// forward connects to a port of a pod's loopback through the API server.
func (c *cluster) forward(pod client.ObjectKey, port int) (net.Conn, error) {
	core, err := corev1client.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	address := core.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	roundTripper, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	webSocket, err := portforward.NewSPDYOverWebsocketDialer(address, c.config)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialer(webSocket, spdy.NewDialer(upgrader, &http.Client{Transport: roundTripper}, http.MethodPost, address), func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	forwarded, err := openPort(connection, port)
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return forwarded, nil
}

// forwardedPort is a connection to a pod's port. Deadlines hold.
type forwardedPort struct {
	net.Conn
	// refused has why the other side ended it, if it says so.
	refused atomic.Pointer[string]
}

// because replaces an error by why the port was refused.
func (p *forwardedPort) because(err error) error {
	if why := p.refused.Load(); err != nil && why != nil {
		return errors.New(*why)
	}
	return err
}

// Read implements net.Conn.
func (p *forwardedPort) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	return n, p.because(err)
}

// Write implements net.Conn.
func (p *forwardedPort) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	return n, p.because(err)
}

// SetDeadline implements net.Conn.
func (p *forwardedPort) SetDeadline(t time.Time) error { return p.because(p.Conn.SetDeadline(t)) }

// openPort opens the streams to a port: one for errors, one for bytes.
func openPort(connection httpstream.Connection, number int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(number))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	refused, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	_ = refused.Close() // only the other side writes there
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	port := &forwardedPort{Conn: here}
	go func() {
		_, _ = io.Copy(data, there)
		_ = connection.Close()
	}()
	go func() {
		_, _ = io.Copy(there, data)
		if why, _ := io.ReadAll(refused); len(why) > 0 { // it ends with the port
			text := string(why)
			port.refused.Store(&text)
		}
		_ = there.Close()
	}()
	return port, nil
}
