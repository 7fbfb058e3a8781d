package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	runUID       = "run"
	radiodUser   = "system:serviceaccount:platform:vignette-radiod"
	operatorUser = "system:serviceaccount:platform:vignette-operator"
)

// users authenticates tokens that are user names.
type users struct{}

func (users) Authenticate(_ context.Context, token string) (server.Identity, error) {
	return server.Identity{Username: token}, nil
}

// bed is a radiod, its archive, and nodes that send and receive.
type bed struct {
	directory string
	daemon    *daemon
	archive   *server.Server
	listener  *httptest.Server
	log       *radioLog
	nodes     []*node

	refused, received  atomic.Uint64
	done, closed       chan struct{} // ends of sending and of receiving
	sending, receiving sync.WaitGroup

	mu      sync.Mutex
	times   []int64     // when each frame was sent, nanoseconds of the real-time clock
	parents []time.Time // when radiod's parent was killed
}

func newBed(o options) (*bed, error) {
	if err := radiotest.Missing(); err != nil {
		return nil, err
	}
	b := &bed{closed: make(chan struct{})}
	if err := b.open(o); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bed) open(o options) (err error) {
	if b.directory, err = os.MkdirTemp("", "soak-*"); err != nil {
		return err
	}
	if err := b.openArchive(o); err != nil {
		return err
	}
	b.daemon = &daemon{server: b.listener.URL}
	if b.daemon.program, err = build(b.directory); err != nil {
		return err
	}
	// The state folder is a tmpfs, as /run is.
	if b.daemon.directory, err = os.MkdirTemp("/dev/shm", "soak-*"); err != nil {
		return err
	}
	if b.daemon.log, err = os.Create(filepath.Join(b.directory, "radiod.log")); err != nil {
		return err
	}
	if err := b.writeState(o); err != nil {
		return err
	}
	return b.daemon.start()
}

// openArchive starts a server and tells it of the run, as the operator does.
func (b *bed) openArchive(o options) (err error) {
	folder := filepath.Join(b.directory, "archive")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	b.archive, err = server.New(server.Config{Dir: folder, Authenticator: users{},
		Policy: server.Policy{OperatorUser: operatorUser, RadiodUser: radiodUser}})
	if err != nil {
		return err
	}
	b.listener = httptest.NewServer(b.archive)
	asOperator := client.New(b.listener.URL, http.DefaultClient, func() (string, error) { return operatorUser, nil })
	b.log = newRadioLog(asOperator)
	plan := runapi.Plan{Namespace: "team", Name: "soak", UID: runUID, Phase: v1alpha1.PhaseRunning}
	if o.captures {
		capture := runapi.PlannedCapture{Name: "run", Network: "vhf", LimitBytes: captureLimit}
		for i := range o.nodes {
			capture.Nodes = append(capture.Nodes, nodeName(i))
		}
		plan.Captures = []runapi.PlannedCapture{capture}
	}
	_, err = asOperator.PutPlan(context.Background(), plan)
	return err
}

// captureLimit of each node is never reached.
const captureLimit = 1 << 40

func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

func (b *bed) writeState(o options) error {
	n := v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "soak-vhf", UID: "net"}}
	n.Spec = v1alpha1.RadioNetworkSpec{Experiment: v1alpha1.ExperimentReference{Namespace: "team", Name: "soak", UID: runUID}, Network: "vhf", MTU: 1500, Seed: 1,
		Waveform: v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Delay: "20ms", Jitter: "3ms", Loss: "2%", Limit: 1000}}}
	if o.captures {
		n.Spec.Captures = []v1alpha1.RadioCapture{{Name: "run", LimitBytes: captureLimit}}
	}
	for i := range o.nodes {
		n.Spec.Members = append(n.Spec.Members, v1alpha1.Member{Node: nodeName(i), Group: "all", NEM: int32(i + 1), //nolint:gosec // few
			MAC: macOf(i).String(), Address: fmt.Sprintf("198.18.9.%d/24", i+1), Interface: "vhf", PodUID: types.UID(podUID(i)), Primary: true})
	}
	network, err := json.Marshal(n)
	if err != nil {
		return err
	}
	const kubeconfig = `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],
		"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`
	err = os.MkdirAll(b.daemon.path("networks"), 0o700)
	for name, content := range map[string]string{"networks/net.json": string(network), "kubeconfig": kubeconfig, "token": radiodUser} {
		err = errors.Join(err, os.WriteFile(b.daemon.path(name), []byte(content), 0o600))
	}
	return err
}

func (b *bed) close() {
	close(b.closed)
	b.receiving.Wait()
	if b.daemon != nil && b.daemon.log != nil {
		b.daemon.end(unix.SIGTERM)
		_ = b.daemon.log.Close()
		_ = os.RemoveAll(b.daemon.directory)
	}
	for _, n := range b.nodes {
		_ = unix.Close(n.socket)
		_ = n.namespace.Close()
	}
	if b.listener != nil {
		b.listener.Close()
		_ = b.archive.Close()
	}
	_ = os.RemoveAll(b.directory)
}

// kill kills the data plane, or all of radiod, and says so.
func (b *bed) kill(parent bool) error {
	if !parent {
		fmt.Println("killed radiod's data plane")
		return b.daemon.killPlane()
	}
	fmt.Println("killed radiod's parent")
	b.daemon.killAll()
	b.parents = append(b.parents, time.Now())
	time.Sleep(downTime)
	return b.daemon.start()
}
