package console

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// apiVariable names the API server for a console in a process of its own.
const apiVariable = "VIGNETTE_TEST_API"

func TestMain(m *testing.M) {
	if api := os.Getenv(apiVariable); api != "" {
		serveAlone(api)
		return
	}
	os.Exit(m.Run())
}

// serveAlone is a console until its input ends.
func serveAlone(api string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	user, err := NewUser(&rest.Config{Host: api})
	if err != nil {
		panic(err)
	}
	origin := "http://" + listener.Addr().String()
	access := NewLocal(user, listener.Addr().(*net.TCPAddr).Port)
	handler, err := New(Config{Assets: build, Library: scenarioFiles, Access: access, Origins: []string{origin}})
	if err != nil {
		panic(err)
	}
	go func() { _ = NewHTTP(handler).Serve(listener) }()
	fmt.Println(origin, access.Token())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

const (
	openPages = 50
	// watchesOfAPage are idle, but for what the API server sends about itself.
	watchesOfAPage = 6
	pollEvery      = 2 * time.Second
	measuredTime   = 10 * time.Second
	// polledBytes is the size of the live figures of a run of 24 nodes.
	polledBytes = 20_000
)

// BenchmarkAnOpenPage says what a page that somebody has open costs the console: six watches, and a poll of live figures every two seconds.
func BenchmarkAnOpenPage(b *testing.B) {
	figures := `{"text":"` + strings.Repeat("x", polledBytes) + `"}`
	api := startAPIServer(b, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			echo(w, r)
			return
		}
		writeText(w, "application/json", figures)
	})
	for b.Loop() {
		s, process := startAlone(b, api.URL)
		before := memoryOf(b, process)
		closeAll := s.openPages()
		time.Sleep(time.Second) // the connections have been made
		started := processorOf(b, process)
		s.pollPages()
		used := processorOf(b, process) - started
		b.ReportMetric(used.Seconds()/measuredTime.Seconds()/openPages*100, "%core/page")
		b.ReportMetric(float64(memoryOf(b, process)-before)/openPages, "kB/page")
		closeAll()
	}
}

// startAlone starts a console in a process of its own.
func startAlone(b *testing.B, api string) (*site, int) {
	b.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), apiVariable+"="+api)
	input, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = input.Close(); _ = command.Wait() })
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	origin, token, _ := strings.Cut(strings.TrimSpace(line), " ")
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	s := &site{t: b, origin: origin, token: token, client: &http.Client{Jar: jar}}
	return s.logIn(), command.Process.Pid
}

// openPages begins the watches of all pages.
func (s *site) openPages() (closeAll func()) {
	var closers []io.Closer
	for range openPages * watchesOfAPage {
		socket, _, err := s.dial(experiments+"?watch=true", nil, http.Header{"Origin": {s.origin}})
		if err != nil {
			s.t.Fatal(err)
		}
		closers = append(closers, socket)
	}
	return func() {
		for _, c := range closers {
			_ = c.Close()
		}
	}
}

// pollPages for the measured time.
func (s *site) pollPages() {
	var pages sync.WaitGroup
	end := time.Now().Add(measuredTime)
	for page := range openPages {
		pages.Go(func() {
			time.Sleep(pollEvery * time.Duration(page) / openPages)
			for ; time.Now().Before(end); time.Sleep(pollEvery) {
				if answer := s.get(experiments + "/quickstart"); answer.status != http.StatusOK {
					s.t.Errorf("a poll: %d", answer.status)
				}
			}
		})
	}
	pages.Wait()
}

// processorOf is the time that a process has used.
func processorOf(b *testing.B, process int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		b.Skip("the processor time of another process is read from /proc")
	}
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")"):])) // utime is field 14, stime 15, and the name field 2
	ticks := 0
	for _, field := range fields[12:14] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memoryOf is the resident memory of a process, in kB.
func memoryOf(b *testing.B, process int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		b.Skip("the memory of another process is read from /proc")
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kilobytes, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		b.Fatal(err)
	}
	return kilobytes
}
