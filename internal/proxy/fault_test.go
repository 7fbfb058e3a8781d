package proxy

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/racedetector"
)

// nearSteps and farSteps are all steps of a request, in their order.
var (
	nearSteps = []string{stepRead, stepSpooled, stepAccepted, stepTaken, stepSent, stepAnswered, stepStored, stepDelivered, stepRemoved}
	farSteps  = []string{stepArrived, stepDialled, stepStarted, stepWritten, stepResponded, stepRecorded, stepAnswering}
)

// accepted returns the bodies of requests that the near proxy has on its disk, with their ids.
func (p *pair) accepted() map[string]string {
	p.t.Helper()
	bodies := map[string]string{}
	files, err := filepath.Glob(filepath.Join(p.near.Folder, "near", "*.request"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			continue // answered meanwhile
		}
		c, err := frame.ReadContent(file)
		if err != nil {
			p.t.Fatal(path, err)
		}
		body, err := io.ReadAll(c)
		if err != nil {
			p.t.Fatal(path, err)
		}
		bodies[string(body)], _, _ = strings.Cut(filepath.Base(path), ".")
		file.Close()
	}
	return bodies
}

// toldUnknown reports whether the near proxy keeps a response for a client that is gone, which says that the outcome is unknown.
func (p *pair) toldUnknown(id string) bool {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.near.Folder, "near", id+".*.response"))
	if err != nil || len(files) != 1 {
		return false
	}
	content, err := os.ReadFile(files[0])
	return err == nil && strings.Contains(string(content), "Whether the service acted on the request is unknown")
}

// answers of a fault's requests.
type answers struct {
	mu              sync.Mutex
	byBody          map[string]string
	ran, refused    int
	unknown, broken int
}

func (a *answers) add(body string, status int, answer string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil:
		a.byBody[body] = "broken"
		a.broken++
	case status == 200:
		a.byBody[body] = "ran"
		a.ran++
	case status == 502 && strings.Contains(answer, "unknown"):
		a.byBody[body] = "unknown"
		a.unknown++
	default:
		a.byBody[body] = fmt.Sprint(status, " ", answer)
		a.refused++
	}
}

// TestAProxyKilledAtAnyStepLosesNothingAndRunsNothingTwice kills either proxy at every step of a request, with others under way.
func TestAProxyKilledAtAnyStepLosesNothingAndRunsNothingTwice(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			for _, step := range append(append([]string{}, nearSteps...), farSteps...) {
				t.Run(step, func(t *testing.T) { killAt(t, protocol, step) })
			}
		})
	}
}

func killAt(t *testing.T, protocol, step string) {
	p := newPair(t, protocol, nil)
	service := newCounter(t)
	nearKilled := strings.HasPrefix(step, "near")
	kills := map[bool]string{true: step}
	far := p.child(p.far, kills[!nearKilled])
	near := p.child(p.near, kills[nearKilled])
	victim, config := far, p.far
	if nearKilled {
		victim, config = near, p.near
	}
	const requests = 8
	got, client := &answers{byBody: map[string]string{}}, p.client()
	var done sync.WaitGroup
	for i := range requests {
		done.Go(func() {
			body := fmt.Sprint("request ", i)
			status, answer, err := post(client, service.URL, body)
			got.add(body, status, answer, err)
		})
	}
	eventually(t, "the proxy kills itself", victim.killed)
	kept := p.accepted()
	p.child(config, "")
	done.Wait()
	eventually(t, "all accepted requests are answered", func() bool { return len(p.accepted()) == 0 })
	ran, twice := service.total()
	t.Logf("%-15s accepted at the kill %d, clients: %d ran, %d unknown, %d broken off; the service ran %d", step, len(kept), got.ran, got.unknown, got.broken, ran)
	if twice != nil {
		t.Error(twice)
	}
	for body := range kept {
		if service.of(body) != 1 && got.byBody[body] != "unknown" {
			t.Errorf("%s was accepted and ran %d times; its client: %s", body, service.of(body), got.byBody[body])
		}
	}
	for body, answer := range got.byBody {
		switch {
		case answer == "ran" && service.of(body) == 1, answer == "unknown" && !nearKilled, answer == "broken" && nearKilled:
		default:
			t.Errorf("%s ran %d times; its client: %s", body, service.of(body), answer)
		}
	}
}

// TestKillsAndCutsAtRandomLoseNothingAndRunNothingTwice has the link cut and the proxies killed again and again under load.
func TestKillsAndCutsAtRandomLoseNothingAndRunNothingTwice(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, protocol, nil)
			service, client := newCounter(t), p.client()
			service.delay.Store(int64(20 * time.Millisecond))
			children := []*child{p.child(p.far, ""), p.child(p.near, "")}
			configs := []proxyconfig.Config{p.far, p.near}
			got := &answers{byBody: map[string]string{}}
			var stop atomic.Bool
			var done sync.WaitGroup
			for worker := range 8 {
				done.Go(func() {
					for i := 0; !stop.Load(); i++ {
						body := fmt.Sprint("request ", worker, "/", i)
						status, answer, err := post(client, service.URL, body)
						got.add(body, status, answer, err)
						if err != nil {
							time.Sleep(50 * time.Millisecond)
						}
					}
				})
			}
			random, kills, cuts := rand.New(rand.NewPCG(3, 4)), 0, 0
			kept := map[string]string{}
			for range 12 {
				time.Sleep(time.Duration(100+random.IntN(400)) * time.Millisecond)
				if random.IntN(3) == 0 {
					cuts++
					p.link.set(true)
					time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
					p.link.set(false)
					continue
				}
				kills++
				i := random.IntN(2)
				children[i].kill()
				if i == 1 {
					maps.Copy(kept, p.accepted())
				}
				children[i] = p.child(configs[i], "")
			}
			stop.Store(true)
			done.Wait()
			eventually(t, "all accepted requests are answered", func() bool { return len(p.accepted()) == 0 })
			ran, twice := service.total()
			unknown := 0
			for body, id := range kept {
				switch {
				case service.of(body) == 1:
				case p.toldUnknown(id): // the far proxy was killed during its call
					unknown++
				default:
					t.Errorf("%s was accepted, did not run, and has no response", body)
				}
			}
			t.Logf("%d kills, %d cuts; clients: %d ran, %d unknown, %d broken off, %d refused; the service ran %d; of %d kept over a kill of the near proxy %d are unknown",
				kills, cuts, got.ran, got.unknown, got.broken, got.refused, ran, len(kept), unknown)
			if twice != nil {
				t.Error(twice)
			}
			for body, answer := range got.byBody {
				if answer == "ran" && service.of(body) != 1 || answer != "ran" && answer != "unknown" && answer != "broken" {
					t.Errorf("%s ran %d times; its client: %s", body, service.of(body), answer)
				}
			}
		})
	}
}

func TestAFullDiskRefusesBeforeAcceptance(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("needs root for a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	for _, side := range []string{"near", "far"} {
		p := newPair(t, proxyconfig.ProtocolHTTP, func(near, far *proxyconfig.Config) {
			map[string]*proxyconfig.Config{"near": near, "far": far}[side].Folder = filepath.Join(folder, side)
			near.Near.DeadlineSeconds = 10
		}).start()
		service, client := newCounter(t), p.client()
		if status, _, err := post(client, service.URL, strings.Repeat("x", 1000)); err != nil || status != 200 {
			t.Fatal(status, err)
		}
		status, answer, err := post(client, service.URL, strings.Repeat("y", 500_000))
		switch {
		case err != nil:
			t.Error(side, err)
		case side == "near" && (status != 503 || !strings.Contains(answer, "the proxy's disk is full")):
			t.Errorf("near: %d %s; want 503 with a reason", status, answer)
		case side == "far" && (status != 200 || service.of(strings.Repeat("y", 500_000)) != 1): // its response stays in memory
			t.Errorf("far: %d %.100s; want it run once", status, answer)
		}
		filler := filepath.Join(folder, "filler")
		file, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(file, io.LimitReader(zeros{}, 1<<20))
		file.Close()
		status, answer, err = post(client, service.URL, "z")
		t.Logf("%s: with no byte left: %d %s", side, status, answer)
		switch {
		case err != nil:
			t.Error(side, err)
		case side == "near" && (status != 503 || service.of("z") != 0):
			t.Errorf("near, full: %d %s, ran %d times; want 503, not run", status, answer, service.of("z"))
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if status, answer, err := post(client, service.URL, "after"); err != nil || status != 200 {
			t.Errorf("%s: with room again: %d %s %v", side, status, answer, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestAClientThatStopsInTheMiddleHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) { near.Limits.Requests = 100 }).start()
	service := newCounter(t)
	var halves []net.Conn
	for i := range 50 {
		conn, err := net.Dial("tcp", p.near.Near.Listen)
		if err != nil {
			t.Fatal(err)
		}
		halves = append(halves, conn)
		text := fmt.Sprintf("POST %s/ HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf", service.URL)
		if _, err := io.WriteString(conn, text[:len(text)-i]); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, err := post(p.client(), service.URL, "whole"); err != nil || status != 200 {
		t.Error(status, err)
	}
	for _, conn := range halves {
		conn.Close()
	}
	eventually(t, "the halves are gone", func() bool {
		files, _ := filepath.Glob(filepath.Join(p.near.Folder, "near", "*.new"))
		return len(files) == 0
	})
	if n, _ := service.total(); n != 1 {
		t.Errorf("%d requests ran; want the whole one only", n)
	}
}

func TestTenThousandQueuedRequestsTakeLittleMemory(t *testing.T) {
	if testing.Short() || racedetector.Enabled {
		t.Skip("takes half a minute, and more memory with the race detector: make test-sequential")
	}
	requests, bodyBytes := 10_000, 10_000
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) { near.Near.DeadlineSeconds = 600 })
	near := p.child(p.near, "")
	service := newCounter(t)
	var ran atomic.Int64
	var failures atomic.Value
	var done sync.WaitGroup
	begun := time.Now()
	dialling := make(chan struct{}, 100)
	for i := range requests {
		done.Go(func() {
			dialling <- struct{}{}
			conn, err := net.Dial("tcp", p.near.Near.Listen)
			if err == nil {
				defer conn.Close()
				_, err = fmt.Fprintf(conn, "POST %s/ HTTP/1.1\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%*d", service.URL, bodyBytes, bodyBytes, i)
			}
			<-dialling
			if err != nil {
				t.Error(err)
				return
			}
			answer := make([]byte, 12)
			if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 200" {
				rest, _ := io.ReadAll(conn)
				failures.Store(fmt.Sprintf("%s%s, %v", answer, rest, err))
				return
			}
			_, _ = io.Copy(io.Discard, conn)
			ran.Add(1)
		})
	}
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(300 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(p.near.Folder, "near", "*.request"))
		if len(files) == requests {
			break
		}
		if failure := failures.Load(); failure != nil || time.Now().After(deadline) {
			t.Fatalf("%d of %d are queued: %v", len(files), requests, failure)
		}
	}
	queued := time.Since(begun)
	memory := memoryOf(t, near.cmd.Process.Pid)
	p.child(p.far, "")
	begun = time.Now()
	done.Wait()
	carried := time.Since(begun)
	n, twice := service.total()
	most := memoryOf(t, near.cmd.Process.Pid)
	t.Logf("%d requests of %d bytes: queued in %v, carried in %v; the near proxy took %d MiB with all queued, %d MiB at most", requests, bodyBytes,
		queued.Round(time.Millisecond), carried.Round(time.Millisecond), memory>>10, most>>10)
	if n != requests || twice != nil || ran.Load() != int64(requests) {
		t.Errorf("%d ran, %d answered, %.200v, %v; want %d, each once", n, ran.Load(), twice, failures.Load(), requests)
	}
	const limit = 400
	if most > limit<<10 {
		t.Errorf("%d MiB; want fewer than %d", most>>10, limit)
	}
}

// memoryOf returns the most KiB that a process had in memory.
func memoryOf(t *testing.T, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}

func TestAResponseThatTheDiskLostIsTold(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	service, client := newCounter(t), p.client()
	keyed := func() (int, string) {
		r, err := http.NewRequest(http.MethodPost, service.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text)
	}
	if status, text := keyed(); status != 200 {
		t.Fatal(status, text)
	}
	files, _ := filepath.Glob(filepath.Join(p.near.Folder, "near", "*.response"))
	if len(files) != 1 {
		t.Fatalf("%v; want one response", files)
	}
	if err := os.Truncate(files[0], 10); err != nil {
		t.Fatal(err)
	}
	if status, text := keyed(); status != 500 || !strings.Contains(text, "cannot read") || service.of("x") != 1 {
		t.Errorf("%d %s, ran %d times; want to hear of the loss", status, text, service.of("x"))
	}
}

func TestAnOrderlyEndLeavesWaitingRequestsToTheNextProcess(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil)
	stop := p.run(p.near) // and no far proxy, so that the request waits
	conn, err := net.Dial("tcp", p.near.Near.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET http://far/ HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	requests := func() int {
		files, _ := filepath.Glob(filepath.Join(p.near.Folder, "near", "*.request"))
		return len(files)
	}
	eventually(t, "acceptance", func() bool { return requests() == 1 })
	stop()
	if text := p.log.String(); requests() != 1 || strings.Contains(text, `"failed"`) {
		t.Errorf("%d requests are left, and the log is\n%s\nwant the request, and no failure", requests(), text)
	}
	p.run(p.near)
	eventually(t, "the next process ends it, as its client is gone", func() bool {
		return requests() == 0 && strings.Contains(p.log.String(), "cancelled: the proxy was stopped before there was a response, and the client is gone")
	})
}

func TestAProxyEndsWithTheConnectionsOfItsClients(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) { near.Limits.Requests = 1 })
	stop := p.run(p.near)
	var conns []net.Conn
	for range 1 + moreConnections + 5 { // more than are served
		conn, err := net.Dial("tcp", p.near.Near.Listen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conns = append(conns, conn)
	}
	// The client waits for its response, and has sent a second request meanwhile.
	if _, err := io.WriteString(conns[0], strings.Repeat("POST http://far/ HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "acceptance", func() bool { return len(p.accepted()) == 1 })
	time.Sleep(100 * time.Millisecond)
	ended := make(chan struct{})
	go func() {
		stop()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the proxy does not end within 10 s")
	}
	for _, conn := range []net.Conn{conns[0], conns[1]} {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Errorf("%v; want the end of a client's connection", err)
		}
	}
	if n := len(p.accepted()); n != 1 {
		t.Errorf("%d accepted requests are left for the next process; want 1", n)
	}
}
