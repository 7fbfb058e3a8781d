package routerprocess

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/routing"
)

// minPs of Go's scheduler: for the routers' thread, the writer of routes, the answers, and a garbage
// collection. A thread in the kernel keeps its P for a while.
const minPs = 4

// Serve is the routers' process. It handles requests of the process that started it, and returns when that
// has ended, as if all instances had been left.
func Serve(log *slog.Logger, arguments []string) error {
	var priority driver.Options
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	flags.IntVar(&priority.Nice, "nice", 0, "scheduling priority of the process, -20 to 19")
	flags.IntVar(&priority.Realtime, "realtime", 0, "as radiod's")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	// The process that started it ends it.
	signal.Ignore(unix.SIGINT, unix.SIGTERM)
	control, err := openChannel(controlSocket, "control")
	if err != nil {
		return fmt.Errorf("only radiod starts routers: %w", err)
	}
	reports, err := openChannel(reportSocket, "reports")
	if err != nil {
		return fmt.Errorf("only radiod starts routers: %w", err)
	}
	_ = os.WriteFile("/proc/self/comm", []byte(Command), 0) // for ps and top only
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), minPs))
	_ = driver.RaiseProcessPriority(priority) // radiod has logged a refusal
	host, err := routing.NewHost(log)
	if err != nil {
		return err
	}
	s := &server{host: host, instances: map[uint64]*served{}}
	go s.answerReports(reports)
	return s.handleRequests(control)
}

// server has the instances.
type server struct {
	host *routing.Host

	mu        sync.Mutex // protects the rest
	instances map[uint64]*served
}

// served is an instance, and the version of its routes that was reported last.
type served struct {
	*routing.Instance
	interfaces      int
	reportedVersion uint64
}

// handleRequests handles requests until the other end is gone.
func (s *server) handleRequests(c *channel) error {
	for {
		payload, fd, err := c.receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("control socket: %w", err)
		}
		var a answer
		if err := s.handle(payload, fd, &a); err != nil {
			a.Error = cmp.Or(err.Error(), "unknown error")
		}
		if payload, err = cbor.Marshal(a); err == nil {
			err = c.send(payload, -1)
		}
		if err != nil {
			return fmt.Errorf("control socket: %w", err)
		}
	}
}

func (s *server) handle(payload []byte, fd int, a *answer) (err error) {
	var namespace *os.File
	if fd >= 0 {
		namespace = os.NewFile(uintptr(fd), "namespace")
		defer namespace.Close()
	}
	var r request
	if err := cbor.Unmarshal(payload, &r); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if r.Do == doAdopt {
		return s.adopt(&r, namespace)
	}
	s.mu.Lock()
	i := s.instances[r.ID]
	if r.Do == doLeave || r.Do == doStop {
		delete(s.instances, r.ID) // first, so that its sockets are not read any more
	}
	s.mu.Unlock()
	if i == nil {
		return fmt.Errorf("%s instance %d: there is none", r.Do, r.ID)
	}
	switch r.Do {
	case doState:
		a.State, err = i.State()
	case doTransmit:
		i.Transmit(r.Interface, r.Allowed)
	case doLeave:
		err = i.Leave()
	case doStop:
		err = i.Stop()
	default:
		err = fmt.Errorf("%q: want %s, %s, %s, %s or %s", r.Do, doAdopt, doState, doTransmit, doLeave, doStop)
	}
	return err
}

func (s *server) adopt(r *request, namespace *os.File) error {
	if namespace == nil || r.Config == nil || r.State == nil {
		return fmt.Errorf("%s: want a namespace, a configuration and a state", r.Do)
	}
	i, err := s.host.Adopt(namespace, *r.Config, *r.State, r.Absent)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances[r.ID] = &served{Instance: i, interfaces: len(r.Config.Interfaces)}
	return nil
}

// answerReports answers requests for reports, until the other end is gone.
func (s *server) answerReports(c *channel) {
	var payload []byte
	var routes []olsr.Route
	for {
		if _, _, err := c.receive(); err != nil {
			return // the control socket has ended too
		}
		payload, routes = s.reports(payload[:0], routes)
		if c.send(payload, -1) != nil {
			return
		}
	}
}

func (s *server) reports(to []byte, scratch []olsr.Route) ([]byte, []olsr.Route) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var r report
	for id, i := range s.instances {
		r.id, r.process, r.trouble = id, i.Process(), nil
		if err := i.Err(); err != nil {
			r.trouble = []byte(err.Error())
		}
		r.counters = r.counters[:0]
		for n := range i.interfaces {
			r.counters = append(r.counters, i.Counters(n))
		}
		before := i.reportedVersion
		scratch, i.reportedVersion = i.RoutesSince(before, scratch[:0])
		r.changed = i.reportedVersion != before
		to = appendReport(to, &r, scratch)
	}
	return to, scratch
}
