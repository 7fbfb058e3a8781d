package wsn

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/internal/wsnbroker"
)

// cxfJars is the folder with Apache CXF's WS-Notification; the test is skipped without it.
func cxfJars(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("java is not installed (Debian package openjdk-17-jdk-headless)")
	}
	out, err := exec.Command("../../../hack/jars", "../../../images/wsn-cxf/pom.xml").Output()
	if err != nil {
		t.Skipf("the jars of Apache CXF cannot be fetched (hack/jars): %v", err)
	}
	return strings.TrimSpace(string(out))
}

// startCXF runs CXF's broker as the image does, on a free port of loopback.
func startCXF(t *testing.T, jars string) string {
	t.Helper()
	at := fmt.Sprintf("127.0.0.1:%d", testport.Free(t))
	output := &syncbuffer.Buffer{}
	java := exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", filepath.Join(jars, "lib", "*"), "org.apache.cxf.wsn.services.Service",
		"-rootUrl", "http://"+at+"/wsn", "-brokerUrl", "vm:(broker:()?persistent=false&useJmx=false)", "-jmxEnable", "false")
	java.Stdout, java.Stderr = output, output
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = java.Process.Kill()
		_ = java.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	for deadline := time.Now().Add(time.Minute); !strings.Contains(output.String(), "CreatePullPoint\n"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("CXF's broker does not start")
		}
	}
	if conn, err := net.Dial("tcp", at); err != nil {
		t.Fatal(err)
	} else {
		conn.Close()
	}
	return at
}

// stranger is CXF's client in a program of its own.
type stranger struct {
	t      *testing.T
	input  io.Writer
	output *syncbuffer.Buffer
}

// step tells the program what to do, and waits for what it is to say.
func (s stranger) step(what, want string) {
	s.t.Helper()
	if what != "" {
		if _, err := io.WriteString(s.input, what+"\n"); err != nil {
			s.t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.output.String(), want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("CXF's client does not say %q:\n%s", want, s.output)
		}
	}
}

func startCXFClient(t *testing.T, jars, broker string) stranger {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("javac is not installed (Debian package openjdk-17-jdk-headless)")
	}
	libraries, classes := filepath.Join(jars, "lib", "*"), t.TempDir()
	if out, err := exec.Command("javac", "-J-XX:TieredStopAtLevel=1", "-d", classes, "-cp", libraries, "testdata/CXFClient.java").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := stranger{t: t, output: &syncbuffer.Buffer{}}
	java := exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", libraries+":"+classes, "CXFClient", "http://"+broker, "http://"+address(t))
	java.Stdout, java.Stderr = s.output, s.output
	input, err := java.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.input = input
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = java.Process.Kill()
		_ = java.Wait()
	})
	return s
}

func TestCXFsClientsSpeakToOurBroker(t *testing.T) {
	t.Parallel()
	jars, at := cxfJars(t), address(t)
	startBroker(t, at, wsnbroker.Config{})
	_, got := startClient(t, subscriber(at, "PRT/+"))
	p, _ := startClient(t, publisher(at, 1))
	s := startCXFClient(t, jars, at)
	s.step("", "ready")
	publish(t, p, "PRT/x/location", `<track xmlns="urn:n"><id>ours</id></track>`)
	s.step("", "consumed PRT/x/location {urn:n}track ours")
	s.step("pull", "pulled PRT/x/location {urn:n}track ours")
	s.step("current", "current ours")
	s.step("notify", "done notify")
	eventually(t, "CXF's message", func() bool {
		return slices.ContainsFunc(got.got(), func(m string) bool {
			return strings.HasPrefix(m, "PRT/java <track") && strings.Contains(m, "from java")
		})
	})
	s.step("register", "unknown registration: ")
	s.step("pause", "done pause")
	publish(t, p, "PRT/x/location", `<track xmlns="urn:n"><id>paused</id></track>`)
	s.step("resume", "consumed PRT/x/location {urn:n}track paused")
	s.step("end", "unknown subscription: ")
}

func TestOurClientsSpeakToCXFsBroker(t *testing.T) {
	t.Parallel()
	at := startCXF(t, cxfJars(t))
	for name, pull := range map[string]bool{"consumer": false, "pull point": true} {
		t.Run(name, func(t *testing.T) {
			config := subscriber(at, "/PRT/+/location")
			config.WSN = &trafficconfig.WSN{Dialect: trafficconfig.DialectSimple, PullPoint: pull}
			_, got := startClient(t, config)
			config = publisher(at, 1)
			config.WSN = &trafficconfig.WSN{Dialect: trafficconfig.DialectSimple}
			p, _ := startClient(t, config)
			var want []string
			for i, content := range contents {
				publish(t, p, fmt.Sprintf("/PRT/x.%d/location", i), content)
				want = append(want, " "+content) // of what a filter with wildcards brings CXF does not tell the topic
			}
			eventually(t, "the last message", func() bool { return len(got.got()) >= len(want) })
			received := slices.Sorted(slices.Values(got.got())) // CXF notifies by several threads, in any order
			if slices.Sort(want); !slices.Equal(received, want) {
				t.Errorf("received %q\nwant %q", received, want)
			}
		})
	}
}
