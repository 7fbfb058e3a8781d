package wsn

import (
	"fmt"
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
)

// cxfJars is the folder with Apache CXF's WS-Notification; the test is skipped without it.
func cxfJars(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("java is not installed (Debian package openjdk-17-jdk-headless)")
	}
	out, err := exec.Command("../../../hack/wsn-cxf").Output()
	if err != nil {
		t.Skipf("the jars of Apache CXF cannot be fetched (hack/wsn-cxf): %v", err)
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

func TestOurClientsSpeakToCXFsBroker(t *testing.T) {
	at := startCXF(t, cxfJars(t))
	began := time.Now()
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
				want = append(want, "/PRT/+/location "+content)
			}
			eventually(t, "the last message", func() bool { return len(got.got()) >= len(want) })
			if received := got.got(); !slices.Equal(received, want) {
				t.Errorf("received %q\nwant %q", received, want)
			}
		})
	}
	t.Log(time.Since(began))
}
