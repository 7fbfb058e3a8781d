package proxy

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
)

// rabbitMQ is one broker for all tests.
var rabbitMQ struct {
	once    sync.Once
	address string
	skip    string
	output  syncbuffer.Buffer
	stop    []func()
}

const rabbitMQServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// startRabbitMQ returns the address of a real broker.
func startRabbitMQ(t testing.TB) string {
	t.Helper()
	rabbitMQ.once.Do(func() { runRabbitMQ(t) })
	if rabbitMQ.skip != "" {
		t.Skip(rabbitMQ.skip)
	}
	return rabbitMQ.address
}

func runRabbitMQ(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(rabbitMQServer); err != nil {
		rabbitMQ.skip = "needs " + rabbitMQServer + ": hack/test-packages installs it"
		return
	}
	folder, err := os.MkdirTemp("", "rabbitmq")
	if err != nil {
		t.Fatal(err)
	}
	rabbitMQ.stop = append(rabbitMQ.stop, func() { _ = os.RemoveAll(folder) })
	rabbitMQ.address = fmt.Sprintf("127.0.0.1:%d", testport.Free(t))
	epmd := testport.Free(t)
	files := map[string]string{
		"rabbitmq.conf":   "listeners.tcp.default = " + rabbitMQ.address + "\ndistribution.listener.interface = 127.0.0.1\nlog.console = true\nlog.file = false\n",
		"enabled_plugins": "[].\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	startForAll(t, exec.Command("epmd", "-port", fmt.Sprint(epmd), "-address", "127.0.0.1"))
	broker := exec.Command(rabbitMQServer)
	broker.Dir = folder
	broker.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_NODENAME=rabbit-proxy@localhost",
		"RABBITMQ_CONFIG_FILE=" + folder + "/rabbitmq.conf", "RABBITMQ_ENABLED_PLUGINS_FILE=" + folder + "/enabled_plugins", "RABBITMQ_MNESIA_BASE=" + folder + "/mnesia",
		"RABBITMQ_GENERATED_CONFIG_DIR=" + folder + "/generated", "RABBITMQ_LOG_BASE=" + folder, "RABBITMQ_LOGS=-", "RABBITMQ_PID_FILE=" + folder + "/pid",
		"RUNNING_UNDER_SYSTEMD=true", fmt.Sprint("RABBITMQ_DIST_PORT=", testport.Free(t)), fmt.Sprint("ERL_EPMD_PORT=", epmd), "ERL_EPMD_ADDRESS=127.0.0.1"}
	startForAll(t, broker)
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(rabbitMQ.output.String(), "Server startup complete"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("RabbitMQ does not start: %s", rabbitMQ.output.String())
		}
	}
	conn, err := net.Dial("tcp", rabbitMQ.address)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// startForAll starts a program that TestMain ends.
func startForAll(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = &rabbitMQ.output, &rabbitMQ.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rabbitMQ.stop = append(rabbitMQ.stop, func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}

// stopRabbitMQ ends the broker after all tests.
func stopRabbitMQ() {
	for i := len(rabbitMQ.stop) - 1; i >= 0; i-- {
		rabbitMQ.stop[i]()
	}
}
