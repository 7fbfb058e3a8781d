package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	websockettransport "k8s.io/client-go/transport/websocket"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// KubeVirt's API: machines, and streams to them.
const (
	machinesPath    = "/apis/kubevirt.io/v1"
	streamsPath     = "/apis/subresources.kubevirt.io/v1"
	machineResource = "virtualmachineinstances"
	// streamProtocol is KubeVirt's websocket subprotocol: bytes in binary messages of any length.
	streamProtocol = "plain.kubevirt.io"
)

// machine is a node that is a virtual machine.
type machine struct {
	site *expandedExperiment
	node topology.Node
	// object in the cluster; only the fields of KubeVirt's VirtualMachineInstance that are needed.
	object virtualMachineInstance
}

type virtualMachineInstance struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		// Phase: Pending, Scheduling, Scheduled, Running, Succeeded, Failed or Unknown.
		Phase string `json:"phase"`
	} `json:"status"`
}

// machineNames are the nodes that are virtual machines.
func (s *expandedExperiment) machineNames() []string { return s.namesOf(topology.Node.IsVM) }

// podNames are the nodes that are pods.
func (s *expandedExperiment) podNames() []string {
	return s.namesOf(func(node topology.Node) bool { return !node.IsVM() })
}

func (s *expandedExperiment) namesOf(is func(topology.Node) bool) (names []string) {
	for _, node := range s.Nodes {
		if is(node) {
			names = append(names, node.Name)
		}
	}
	return names
}

// completeMachine offers the nodes that are virtual machines as the first argument.
func (t *target) completeMachine(experiment *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return t.completeFrom(cmd, *experiment, typed, (*expandedExperiment).machineNames)
	}
}

// machineUp finds the machine of a node and waits until it runs, which notes announces.
func (c *cluster) machineUp(ctx context.Context, experiment, node, command string, notes io.Writer) (*machine, error) {
	for waits := false; ; waits = true {
		m, err := c.machineOf(ctx, experiment, node, command)
		if err != nil || m.isRunning() {
			return m, err
		}
		if !waits {
			fmt.Fprintf(notes, "The virtual machine of node %s does not run yet: waiting (Ctrl-C leaves).\n", node)
		}
		if pause(ctx, bootInterval) != nil {
			return nil, exit(exitDetached)
		}
	}
}

// machineOf a node; an error if it is not running and will not be.
func (c *cluster) machineOf(ctx context.Context, experiment, nodeName, command string) (*machine, error) {
	site, err := c.startedExperiment(ctx, experiment, "vignette "+command+" "+nodeName)
	if err != nil {
		return nil, err
	}
	node, err := site.node(nodeName)
	if err != nil {
		return nil, err
	}
	if !node.IsVM() {
		return nil, fmt.Errorf("node %[1]s of experiment %[2]s is a pod, which has no %[3]s: vignette shell -n %[4]s -e %[2]s %[1]s%[5]s",
			node.Name, site.Name, machineEndpoints[command], site.Namespace, suggestMachines(site))
	}
	m := &machine{site: site, node: node}
	if err := c.readMachine(ctx, m); err != nil {
		return nil, err
	}
	switch phase := m.object.Status.Phase; {
	case m.isRunning() || phase == "Pending" || phase == "Scheduling" || phase == "Scheduled":
		return m, nil
	case phase != "":
		return nil, fmt.Errorf("the virtual machine of node %s does not run, it is %s: %s", node.Name, phase, m.nextSteps())
	case m.object.Metadata.UID == "" && site.Status.Phase == v1alpha1.PhaseRunning:
		return nil, fmt.Errorf("the virtual machine of node %s is gone: %s", node.Name, m.nextSteps())
	}
	return m, nil
}

func (m *machine) isRunning() bool { return m.object.Status.Phase == "Running" }

// machineEndpoints are what the commands open.
var machineEndpoints = map[string]string{"console": "serial console", "ssh": "SSH server"}

// suggestMachines names the nodes that are virtual machines.
func suggestMachines(s *expandedExperiment) string {
	names := s.machineNames()
	if len(names) == 0 {
		return "; the experiment has no node with runtime: vm"
	}
	return ", or name a virtual machine: " + listNames(names)
}

// nextSteps for a machine that is not running.
func (m *machine) nextSteps() string {
	return fmt.Sprintf("vignette status -n %[1]s %[2]s shows why; its logs: vignette logs -n %[1]s -e %[2]s %[3]s", m.site.Namespace, m.site.Name, m.node.Name)
}

// readMachine reads the machine's object; it stays empty if it does not exist.
func (c *cluster) readMachine(ctx context.Context, m *machine) error {
	core, err := corev1client.NewForConfig(c.config)
	if err != nil {
		return err
	}
	name := render.PodName(m.site.Name, m.node.Name)
	answer := core.RESTClient().Get().AbsPath(machinesPath, "namespaces", m.site.Namespace, machineResource, name).Do(ctx)
	err = answer.Error() // it has the server's reasons, unlike Raw's error
	var status apierrors.APIStatus
	switch {
	case err == nil:
		text, err := answer.Raw()
		err = errors.Join(err, json.Unmarshal(text, &m.object))
		if !metav1.IsControlledBy(&m.object.Metadata, m.site.Experiment) { // another experiment may use the name meanwhile
			m.object = virtualMachineInstance{}
		}
		return err
	case !apierrors.IsNotFound(err):
		return explain(err)
	case errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == machineResource:
		return nil
	}
	return errors.New("the cluster has no KubeVirt, which runs virtual machines: see docs/how-to/use-virtual-machines.md (the developer cluster: hack/cluster up --with kubevirt)")
}

// causeOf the failure of a stream.
func causeOf(err error) error {
	if refused, ok := errors.AsType[*httpstream.UpgradeFailureError](err); ok {
		return refused.Cause
	}
	return err
}

// isClosedPort reports whether KubeVirt found nobody at a machine's port.
func isClosedPort(err error) bool { return strings.Contains(causeOf(err).Error(), "dialing VM") }

// explain adds what to do if a stream to a machine cannot be opened.
func (m *machine) explain(err error) error {
	err = causeOf(err)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: it takes the role vignette-experimenter in the namespace (docs/how-to/share-a-cluster.md)", err)
	case apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("KubeVirt's API does not answer (%w): kubectl get apiservice v1.subresources.kubevirt.io", err)
	case isClosedPort(err):
		return fmt.Errorf("node %[1]s does not answer on this port (%[2]w): if it still boots try again, else see whether its image runs an SSH server: vignette console -n %[3]s -e %[4]s %[1]s",
			m.node.Name, err, m.site.Namespace, m.site.Name)
	}
	return explain(err)
}

// machineStream opens a stream to a machine, such as its console.
func (c *cluster) machineStream(ctx context.Context, m *machine, what string) (io.ReadWriteCloser, error) {
	host, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, err
	}
	address := host.JoinPath(streamsPath, "namespaces", m.site.Namespace, machineResource, m.object.Metadata.Name, what)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	roundTripper, holder, err := websockettransport.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	connection, err := websockettransport.Negotiate(roundTripper, holder, request, streamProtocol)
	if err != nil {
		return nil, err
	}
	return &machineStream{Conn: connection}, nil
}

// portForwardPath is the stream to a TCP port of a machine.
func portForwardPath(port uint16) string { return path.Join("portforward", fmt.Sprint(port), "tcp") }

// machineStream has the bytes of a websocket's binary messages. One goroutine may read while another writes.
type machineStream struct {
	*websocket.Conn
	message io.Reader
	closing sync.Once
}

// Read implements io.Reader; any end of the stream is io.EOF.
func (s *machineStream) Read(p []byte) (int, error) {
	for {
		if s.message == nil {
			kind, message, err := s.NextReader()
			if err != nil {
				return 0, endOfStream(err)
			}
			if kind != websocket.BinaryMessage {
				continue
			}
			s.message = message
		}
		n, err := s.message.Read(p)
		if errors.Is(err, io.EOF) {
			s.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// endOfStream is io.EOF: KubeVirt mostly ends streams by closing the connection.
func endOfStream(err error) error {
	if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseAbnormalClosure, websocket.CloseNoStatusReceived) {
		return io.EOF
	}
	return err
}

// Write implements io.Writer.
func (s *machineStream) Write(p []byte) (int, error) {
	if err := s.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close sends a close message and ends the connection.
func (s *machineStream) Close() (err error) {
	s.closing.Do(func() {
		_ = s.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
		err = s.Conn.Close()
	})
	return err
}
