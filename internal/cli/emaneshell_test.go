package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/emane/emanetest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// podPorts is an API server that forwards the ports of one pod, which has a process at some, to the processes' addresses.
type podPorts struct {
	path      string
	processes map[string]string
	// ended: the processes close their connections.
	ended <-chan struct{}
}

func (p *podPorts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != p.path {
		http.Error(w, "forward "+r.URL.Path+"; want "+p.path, http.StatusNotFound)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	opened := make(chan httpstream.Stream, 2)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		opened <- s
		return nil
	})
	if connection == nil {
		return
	}
	refused, data := <-opened, <-opened
	process, err := net.Dial("tcp4", p.processes[data.Headers().Get(corev1.PortHeader)])
	if err != nil {
		fmt.Fprintf(refused, "no process at port %s", data.Headers().Get(corev1.PortHeader))
		_, _ = refused.Close(), data.Close()
		<-connection.CloseChan()
		return
	}
	go func() {
		<-p.ended
		_ = process.Close()
	}()
	go func() { _, _ = io.Copy(process, data) }()
	_, _ = io.Copy(data, process)
	_ = connection.Close()
}

// emaneCluster is a running experiment whose network wan EMANE carries, and its radio network.
func emaneCluster() (*v1alpha1.Experiment, *v1alpha1.RadioNetwork) {
	e := liveCluster()
	e.UID, e.Spec.Timeline = "0815", nil
	e.Spec.Networks[0] = v1alpha1.Network{Name: "wan", Engine: v1alpha1.EngineEMANE, Subnet: "198.18.9.0/24", RFPipe: &v1alpha1.RFPipeModel{}}
	n := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Name: render.RadioNetworkName(e, "wan"), Namespace: platformNamespace, UID: "4711"}}
	n.Spec.Members = []v1alpha1.Member{{Node: "hq", NEM: 1}, {Node: "veh-1", NEM: 2}, {Node: "veh-2", NEM: 3}, {Node: "veh-3", NEM: 4}}
	n.Status.Hosts = []v1alpha1.RadioNetworkHost{{Host: "n1", NEMs: []int32{1}}, {Host: "n2", NEMs: []int32{2, 3}}}
	return e, n
}

// emaneSays runs a command of EMANE's shell, or what is typed.
func emaneSays(t *testing.T, place shellPlace, typed string, command ...string) (string, error) {
	t.Helper()
	return emaneAnswers(t.Context(), t, place, strings.NewReader(typed), nil, command...)
}

// emaneAnswers until its process has ended.
func emaneAnswers(ctx context.Context, t *testing.T, place shellPlace, in io.Reader, ended <-chan struct{}, command ...string) (string, error) {
	t.Helper()
	process, err := emanetest.Listen(2, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Close() })
	process.Count("numTxSlotErrorMissed", 5)
	e, n := emaneCluster()
	server := httptest.NewServer(&podPorts{
		path:      "/api/v1/namespaces/" + platformNamespace + "/pods/" + render.EMANEPodName(n.Name, "n2") + "/portforward",
		processes: map[string]string{fmt.Sprint(emane.InPod(n, 2).Control.Port()): process.Address()},
		ended:     ended,
	})
	t.Cleanup(server.Close)
	c := newPlatform().cluster(t, []client.Object{e, n}...)
	c.config = &rest.Config{Host: server.URL}
	var out bytes.Buffer
	err = c.emaneShell(ctx, place, platformNamespace, command, streams{in, &out, io.Discard})
	return out.String(), err
}

func TestTheShellOfEMANEReadsTheNodesOwnProcess(t *testing.T) {
	const want = "mac  numTxSlotErrorMissed = 5\n"
	if got, err := emaneSays(t, shellPlace{node: "veh-1"}, "", "get", "stat", "mac", "numTxSlotErrorMissed"); err != nil || got != want {
		t.Errorf("a command: %q, %v; want %q", got, err, want)
	}
	if got, err := emaneSays(t, shellPlace{node: "veh-1", network: "wan"}, "get stat mac\nquit\n"); err != nil || got != want {
		t.Errorf("typed: %q, %v; want %q", got, err, want)
	}
}

// readFunc is a reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

func TestOneCtrlCEndsTheShellOfEMANE(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	waits := readFunc(func([]byte) (int, error) {
		cancel()
		select {} // nothing is ever typed
	})
	if got, err := emaneAnswers(ctx, t, shellPlace{node: "veh-1"}, waits, nil); !errors.Is(err, context.Canceled) || got != "" {
		t.Errorf("%q, %v; want that it is interrupted", got, err)
	}
}

func TestTheShellOfEMANESaysThatTheProcessEnded(t *testing.T) {
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	typed := readFunc(func(b []byte) (int, error) { // again and again, as the first may still be answered
		end()
		return copy(b, "get stat mac\n"), nil
	})
	_, err := emaneAnswers(t.Context(), t, shellPlace{node: "veh-1"}, typed, ended)
	if want := " ended: vignette status -n team-nor bft-live shows why"; err == nil || !strings.HasSuffix(err.Error(), want) || !strings.Contains(err.Error(), "node veh-1 in pod "+platformNamespace+"/") {
		t.Errorf("%v; want its node, its pod and %q", err, want)
	}
}

func TestErrorsOfTheShellOfEMANENameTheProcess(t *testing.T) {
	e, _ := emaneCluster()
	s, err := expand(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{os.ErrDeadlineExceeded, "EMANE's process of node hq in pod vignette-system/p has not answered for 20s: vignette status -n team-nor bft-live shows whether it runs"},
		{errors.New("control port: EMANE refuses the request: x"), "EMANE's process of node hq in pod vignette-system/p: control port: EMANE refuses the request: x"},
	} {
		if got := s.explainControl(c.err, "hq", client.ObjectKey{Namespace: "vignette-system", Name: "p"}); got.Error() != c.want {
			t.Errorf("%v; want %s", got, c.want)
		}
	}
	if _, err := emaneSays(t, shellPlace{node: "veh-1"}, "", "get", "stat", "app"); err == nil || !strings.HasPrefix(err.Error(), `layer "app": want `) {
		t.Errorf("a wrong command: %v", err)
	}
}

func TestCompletionForEMANEOffersNodesAndNetworksThatItCarries(t *testing.T) {
	e := withMachines()
	e.Spec.Networks[0].Engine = v1alpha1.EngineEMANE
	s, err := expand(e)
	if err != nil {
		t.Fatal(err)
	}
	if nodes := s.emaneNames(); !slices.Equal(nodes, []string{"hq", "veh-1", "veh-2", "veh-3"}) {
		t.Errorf("nodes %v; want pods and virtual machines", nodes)
	}
	for _, args := range [][]string{nil, {"hq"}} {
		if networks := s.emaneNetworksOf(args); !slices.Equal(networks, []string{"wan"}) {
			t.Errorf("networks after %q: %v; want wan", args, networks)
		}
	}
}

func TestTheShellOfEMANESaysWhyThereIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		place shellPlace
		want  string
	}{
		"a network of the native engine": {shellPlace{node: "hq", network: "lan"}, "--network lan: want a network of node hq with engine emane (wan)"},
		"no radio on any host":           {shellPlace{node: "veh-3"}, "no host has the radio of node veh-3 on network wan: vignette status"},
		"no process at the port":         {shellPlace{node: "veh-2"}, ": no process at port 47002"},
		"no such node":                   {shellPlace{node: "prt"}, "there is no node prt in experiment bft-live"},
	} {
		if _, err := emaneSays(t, c.place, "", "show"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
}
