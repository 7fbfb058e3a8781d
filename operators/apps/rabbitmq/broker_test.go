package rabbitmq_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/rabbitmq"
)

// RabbitMQ takes seconds of processor time to start, so all tests share these brokers. One has TLS and a password, the other
// two are an open cluster.
var secure, nor, usa broker

// ports of a broker replace those that it has in a pod.
type ports struct{ amqp, mqtt, stomp, metrics, distribution int }

// broker is a real RabbitMQ with a rendered configuration, on loopback.
type broker struct {
	once  sync.Once
	dir   string
	ports ports
	log   syncbuffer.Buffer
	err   error
	kill  func()
}

// epmd is Erlang's name service for the brokers of the tests only.
var epmd struct {
	once sync.Once
	port int
	err  error
	kill func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, b := range []*broker{&secure, &nor, &usa} {
		if b.kill != nil {
			b.kill()
		}
		_ = os.RemoveAll(b.dir)
	}
	if epmd.kill != nil {
		epmd.kill()
	}
	os.Exit(code)
}

const server = "/usr/lib/rabbitmq/bin/rabbitmq-server"

func requirePrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := os.Stat(program); err == nil {
			continue
		}
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: hack/test-packages installs it", program)
		}
	}
}

func startEPMD(t *testing.T) {
	t.Helper()
	epmd.once.Do(func() {
		epmd.port = testport.Free(t)
		epmd.kill, _, epmd.err = testtool.Child(exec.Command("epmd", "-port", fmt.Sprint(epmd.port), "-address", "127.0.0.1"))
	})
	if epmd.err != nil {
		t.Fatal(epmd.err)
	}
}

// start starts all brokers, once.
func start(t *testing.T) {
	t.Helper()
	requirePrograms(t, server, "epmd")
	startEPMD(t)
	for b, s := range map[*broker]apps.Site{&secure: secureSite(), &nor: clusterSite("nor", "usa"), &usa: clusterSite("usa", "nor")} {
		b.once.Do(func() {
			b.ports = ports{testport.Free(t), testport.Free(t), testport.Free(t), testport.Free(t), testport.Free(t)}
			if b.dir, b.err = os.MkdirTemp("", "rabbitmq"); b.err == nil {
				b.err = b.start(s)
			}
		})
		if b.err != nil {
			t.Fatal(b.err)
		}
	}
}

// start writes the rendered files as the agent would, with a directory and ports of the test, and runs the broker.
func (b *broker) start(site apps.Site) error {
	site.MetricsPorts = []int{b.ports.metrics}
	rendering := rabbitmq.Kind{}.Render(site)
	moved := strings.NewReplacer(
		"rabbit@localhost", "rabbit-alone@localhost", "rabbit@nor", "rabbit-nor@localhost", "rabbit@usa", "rabbit-usa@localhost",
		"listeners.tcp.default = 5672", "listeners.tcp.default = "+b.at(b.ports.amqp), "listeners.ssl.default = 5671", "listeners.ssl.default = "+b.at(b.ports.amqp),
		"listeners.tcp.default = 1883", "listeners.tcp.default = "+b.at(b.ports.mqtt), "listeners.ssl.default = 8883", "listeners.ssl.default = "+b.at(b.ports.mqtt),
		"listeners.tcp.default = 61613", "listeners.tcp.default = "+b.at(b.ports.stomp), "listeners.ssl.default = 61614", "listeners.ssl.default = "+b.at(b.ports.stomp),
		"prometheus.tcp.port", "prometheus.tcp.ip = 127.0.0.1\nprometheus.tcp.port",
		"exec ", fmt.Sprintf("export RABBITMQ_DIST_PORT=%d ERL_EPMD_PORT=%d\nexec ", b.ports.distribution, epmd.port),
		"/vignette/run", b.dir, "/vignette/security", b.dir+"/security")
	for _, f := range rendering.Files {
		if err := os.WriteFile(moved.Replace(f.Path), []byte(moved.Replace(f.Content)), 0o644); err != nil {
			return err
		}
	}
	if err := secrets(filepath.Join(b.dir, "security")); err != nil {
		return err
	}
	command := rendering.Instances[0].Command
	cmd := exec.Command(command[0], moved.Replace(command[1]))
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH")}, b.dir, &b.log, &b.log
	if os.Geteuid() == 0 {
		const nonRoot = 65532
		if err := filepath.WalkDir(b.dir, func(path string, _ os.DirEntry, _ error) error { return os.Chown(path, nonRoot, nonRoot) }); err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nonRoot, Gid: nonRoot}}
	}
	var err error
	b.kill, _, err = testtool.Child(cmd)
	return err
}

func (b *broker) at(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// wait waits until all protocols are served.
func (b *broker) wait(t *testing.T) {
	t.Helper()
	for _, port := range []int{b.ports.amqp, b.ports.mqtt, b.ports.stomp, b.ports.metrics} {
		served := reached(func() bool {
			c, err := net.Dial("tcp", b.at(port))
			if err == nil {
				c.Close()
			}
			return err == nil
		})
		if !served {
			t.Fatalf("RabbitMQ does not serve port %d; it says\n%s", port, b.log.String())
		}
	}
}

// waitTimeout is long enough for a busy host.
const waitTimeout = 3 * time.Minute

// reached waits until ok.
func reached(ok func() bool) bool {
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

func site(node string) apps.Site {
	return apps.Site{App: v1alpha1.App{Name: "broker", RabbitMQ: &v1alpha1.RabbitMQ{}}, Node: node, Instances: []string{node + "/broker"}, Seed: 7}
}

func secureSite() apps.Site {
	s := site("deu")
	s.App.Security = &v1alpha1.Security{TLS: true, Password: true}
	return s
}

func clusterSite(node, peer string) apps.Site {
	s := site(node)
	s.App.RabbitMQ.Cluster, s.ClusterPeers = true, []string{peer}
	return s
}

// startOpen is a broker that is open to everybody.
func startOpen(t *testing.T) *broker {
	t.Helper()
	start(t)
	nor.wait(t)
	return &nor
}
