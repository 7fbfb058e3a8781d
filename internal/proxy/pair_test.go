package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
)

const (
	envConfig = "PROXY_TEST_CONFIG"
	// envKill is the step at which a child process kills itself.
	envKill = "PROXY_TEST_KILL_AT"
)

// TestMain makes the test's program a proxy where it is asked to be one.
func TestMain(m *testing.M) {
	path := os.Getenv(envConfig)
	if path == "" {
		code := m.Run()
		stopRabbitMQ()
		os.Exit(code)
	}
	if kill := os.Getenv(envKill); kill != "" {
		atStep = func(step string) {
			if step == kill {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Serve(ctx, path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// pair is two proxies with a link between them that can be cut.
type pair struct {
	t         testing.TB
	near, far proxyconfig.Config
	link      *cuttable
	output    *syncbuffer.Buffer
	// log is the message log of both.
	log *syncbuffer.Buffer
}

// newPair configures a pair for a protocol; start and child run its proxies.
func newPair(t testing.TB, protocol string, change func(near, far *proxyconfig.Config)) *pair {
	t.Helper()
	p := &pair{t: t, output: &syncbuffer.Buffer{}, log: &syncbuffer.Buffer{}}
	farAt := fmt.Sprintf("127.0.0.1:%d", testport.Free(t))
	if protocol == proxyconfig.ProtocolAMQP { // the link is between the near proxy and the broker
		farAt = startRabbitMQ(t)
	}
	p.link = newCuttable(t, farAt)
	common := proxyconfig.Config{Protocol: protocol, Retry: proxyconfig.Retry{FirstSeconds: 0.05, MaxSeconds: 0.2, SilenceSeconds: 2}}
	p.near, p.far = common, common
	p.near.Instance, p.near.Folder = "a/near", t.TempDir()
	p.near.Near = &proxyconfig.Near{Listen: fmt.Sprintf("127.0.0.1:%d", testport.Free(t)), Peer: p.link.address, DeadlineSeconds: 30}
	p.far.Instance, p.far.Folder = "b/far", t.TempDir()
	p.far.Far = &proxyconfig.Far{Listen: farAt}
	if protocol == proxyconfig.ProtocolAMQP {
		p.near.Near.Queue, p.far.Far.Queue = t.Name(), t.Name()
		p.near.AMQP, p.far.AMQP = &proxyconfig.AMQP{Broker: p.link.address}, &proxyconfig.AMQP{Broker: farAt}
	}
	if change != nil {
		change(&p.near, &p.far)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.output.String())
		}
	})
	return p
}

// run runs a proxy in this process, and returns what ends it.
func (p *pair) run(config proxyconfig.Config) (stop func()) {
	p.t.Helper()
	if err := config.Validate(); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, config, messagelog.NewWriter(p.log), func(text string) { fmt.Fprintln(p.output, config.Instance, text) })
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Error(err)
		}
	})
	p.t.Cleanup(stop)
	p.listens(config)
	return stop
}

// start runs both in this process.
func (p *pair) start() *pair {
	p.t.Helper()
	p.run(p.far)
	p.run(p.near)
	return p
}

// listens waits until a proxy does.
func (p *pair) listens(config proxyconfig.Config) {
	p.t.Helper()
	at := ""
	switch {
	case config.Near != nil:
		at = config.Near.Listen
	case config.Protocol == proxyconfig.ProtocolHTTP:
		at = config.Far.Listen
	default:
		return
	}
	eventually(p.t, config.Instance+" listens", func() bool {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// records returns the message log by instance and id, as "status status …".
func (p *pair) records() map[string]map[string]string {
	p.t.Helper()
	byID := map[string]map[string]string{}
	last := int64(0)
	bad, err := messagelog.Read(strings.NewReader(p.log.String()), func(r messagelog.Record) {
		if byID[r.ID] == nil {
			byID[r.ID] = map[string]string{}
		}
		text := string(r.Status)
		if r.Text != "" {
			text += "(" + r.Text + ")"
		}
		byID[r.ID][r.Instance] = strings.TrimSpace(byID[r.ID][r.Instance] + " " + text)
		last = max(last, r.TimeNanoseconds)
	})
	if err != nil || bad > 0 || last > time.Now().UnixNano() {
		p.t.Fatalf("%v, %d bad records, the last at %d", err, bad, last)
	}
	return byID
}

// child is a proxy in a process of its own.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// child runs a proxy that kills itself at a step, if one is given.
func (p *pair) child(config proxyconfig.Config, killAt string) *child {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "config.json")
	text, err := json.Marshal(config)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		p.t.Fatal(err)
	}
	c := &child{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), envConfig+"="+path, envKill+"="+killAt, "VIGNETTE_MESSAGE_LOG="+filepath.Join(config.Folder, "log"))
	c.cmd.Stderr, c.cmd.Stdout = p.output, p.output
	if err := c.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.done)
	}()
	p.t.Cleanup(c.kill)
	p.listens(config)
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// killed reports whether the process has ended.
func (c *child) killed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// client is an ordinary one with the near proxy as its HTTP proxy.
func (p *pair) client() *http.Client {
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.near.Near.Listen}), MaxIdleConnsPerHost: 100}}
}

// post sends a request, and returns the response's status and body.
func post(c *http.Client, to, body string) (int, string, error) {
	r, err := http.NewRequest(http.MethodPost, to, struct{ io.Reader }{strings.NewReader(body)}) // no GetBody: the client must not repeat it
	if err != nil {
		return 0, "", err
	}
	r.ContentLength = int64(len(body))
	response, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// counter is a service that counts how often it ran each request.
type counter struct {
	*httptest.Server
	mu    sync.Mutex
	runs  map[string]int
	delay atomic.Int64
	// held, if it is set, keeps all responses back until it is closed.
	held chan struct{}
}

// newHeldCounter returns one whose responses wait for release.
func newHeldCounter(t testing.TB) (c *counter, release func()) {
	c = newCounter(t)
	c.held = make(chan struct{})
	release = sync.OnceFunc(func() { close(c.held) })
	t.Cleanup(release) // before Close, which waits for the responses
	return c, release
}

func newCounter(t testing.TB) *counter {
	c := &counter{runs: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		c.mu.Lock()
		c.runs[string(body)]++
		c.mu.Unlock()
		time.Sleep(time.Duration(c.delay.Load()))
		if c.held != nil {
			<-c.held
		}
		_, _ = w.Write(append([]byte("ran "), body...))
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *counter) of(body string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[body]
}

// total is the number of different requests that ran, and whether one ran more than once.
func (c *counter) total() (different int, twice []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for body, n := range c.runs {
		if n > 1 {
			twice = append(twice, fmt.Sprintf("%s ran %d times", body, n))
		}
	}
	return len(c.runs), twice
}

var eventually = testtool.Eventually

// cuttable passes TCP connections and UDP datagrams on, until it is cut: then nothing passes, and nobody is told.
type cuttable struct {
	address string
	to      string
	mu      sync.Mutex
	mended  *sync.Cond
	cut     bool
}

func newCuttable(t testing.TB, to string) *cuttable {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", testport.Free(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	c := &cuttable{address: listener.Addr().String(), to: to}
	c.mended = sync.NewCond(&c.mu)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go c.pass(conn)
		}
	}()
	c.passDatagrams(t)
	return c
}

func (c *cuttable) pass(near net.Conn) {
	defer near.Close()
	c.wait()
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer far.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			c.copy(way[1], way[0])
			ended <- struct{}{}
		}()
	}
	<-ended
}

func (c *cuttable) copy(to, from net.Conn) {
	piece := make([]byte, 16<<10)
	for {
		n, err := from.Read(piece)
		c.wait()
		if n > 0 {
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *cuttable) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.cut {
		c.mended.Wait()
	}
}

func (c *cuttable) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// set cuts or mends the link.
func (c *cuttable) set(cut bool) {
	c.mu.Lock()
	c.cut = cut
	c.mended.Broadcast()
	c.mu.Unlock()
}

// passDatagrams passes them between one near end at a time and the far one, and loses them while the link is cut.
func (c *cuttable) passDatagrams(t testing.TB) {
	socket, err := net.ListenPacket("udp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		ends := map[string]net.Conn{}
		for {
			piece := make([]byte, 64<<10)
			n, from, err := socket.ReadFrom(piece)
			if err != nil {
				return
			}
			far, known := ends[from.String()]
			if !known {
				if far, err = net.Dial("udp", c.to); err != nil {
					return
				}
				t.Cleanup(func() { far.Close() })
				ends[from.String()] = far
				go func() {
					for piece := make([]byte, 64<<10); ; {
						n, err := far.Read(piece)
						if err != nil {
							if strings.Contains(err.Error(), "closed") {
								return
							}
							continue // the far proxy does not listen now
						}
						if !c.isCut() {
							_, _ = socket.WriteTo(piece[:n], from)
						}
					}
				}()
			}
			if !c.isCut() {
				_, _ = far.Write(piece[:n])
			}
		}
	}()
}

// rawExchange sends bytes to a proxy, and returns all that comes back until the connection ends.
func rawExchange(t testing.TB, at, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// rawService answers every connection with bytes, after it has read a request with a Content-Length or chunks; it tells what it read.
func rawService(t testing.TB, answer func(request string) string) (at string, requests <-chan string) {
	t.Helper()
	listener := testport.Listen(t)
	read := make(chan string, 1000)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				text := readRaw(bufio.NewReader(conn))
				read <- text
				_, _ = io.WriteString(conn, answer(text))
			}()
		}
	}()
	return listener.Addr().String(), read
}

// readRaw reads one request as it is on the wire.
func readRaw(r *bufio.Reader) string {
	var out strings.Builder
	length, chunked := 0, false
	for {
		line, err := r.ReadString('\n')
		out.WriteString(line)
		if err != nil || line == "\r\n" {
			break
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case strings.EqualFold(name, "Content-Length"):
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		case strings.EqualFold(name, "Transfer-Encoding"):
			chunked = true
		}
	}
	body := make([]byte, length)
	n, _ := io.ReadFull(r, body)
	out.Write(body[:n])
	for chunked {
		line, err := r.ReadString('\n')
		out.WriteString(line)
		if size, _ := strconv.ParseInt(strings.TrimSpace(line), 16, 32); size == 0 || err != nil {
			for line != "\r\n" && err == nil { // the trailer
				line, err = r.ReadString('\n')
				out.WriteString(line)
			}
			break
		} else {
			chunk := make([]byte, size+2)
			n, _ := io.ReadFull(r, chunk)
			out.Write(chunk[:n])
		}
	}
	return out.String()
}
