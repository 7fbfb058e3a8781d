// Package queues lets apps ask how many frames wait at their node's radios (package radioqueue), by a socket in each pod's
// namespace. A socket keeps its namespace alive: whoever removes pods asks Serves.
package queues

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radioqueue"
)

// Options of Servers.
type Options struct {
	// Attachments of the host that which accepts.
	Attachments func(which func(*membership.Attachment) bool) []*membership.Attachment
	// Waiting returns the frames that wait at a radio that radiod's own engine serves.
	Waiting func(a *membership.Attachment) int
	// Find returns the namespace of an attachment.
	Find func(a *membership.Attachment) (*os.File, error)
	Log  *slog.Logger
}

// Servers of the pods' queues.
type Servers struct {
	Options
	wake bell.Bell

	mu     sync.Mutex
	served map[string]*server // by pod
}

// server is one pod's server; nil if it could not be made.
type server struct {
	namespace netns.Identity
	server    *radioqueue.Server
	err       error
}

// New makes Servers that Run runs.
func New(o Options) *Servers {
	return &Servers{Options: o, wake: bell.New(), served: map[string]*server{}}
}

// Wake makes Run look again at which pods there are. It does not block.
func (s *Servers) Wake() {
	s.wake.Ring()
}

// retryInterval is when a failed socket is tried again.
const retryInterval = time.Second

// Run serves the pods' queues until ctx ends.
func (s *Servers) Run(ctx context.Context) error {
	again := time.NewTicker(retryInterval)
	defer again.Stop()
	for {
		s.reconcile()
		select {
		case <-ctx.Done():
			s.end(func(string, *server) bool { return true })
			return nil
		case <-s.wake:
		case <-again.C:
		}
	}
}

// known accepts the attachments whose queues are known: not EMANE's, and not those of guests, which cannot reach the
// socket.
func known(a *membership.Attachment) bool { return a.Engine == "" && a.Guest == nil }

// reconcile makes and ends sockets so that each pod with a native radio has one.
func (s *Servers) reconcile() {
	pods := map[string]*membership.Attachment{}
	for _, a := range s.Attachments(known) {
		pods[a.PodUID] = a
	}
	s.end(func(pod string, x *server) bool { return pods[pod] == nil || pods[pod].Namespace != x.namespace })
	for pod, a := range pods {
		s.serve(pod, a)
	}
}

func (s *Servers) serve(pod string, a *membership.Attachment) {
	s.mu.Lock()
	before := s.served[pod]
	s.mu.Unlock()
	if before != nil && before.server != nil {
		return
	}
	x := &server{namespace: a.Namespace}
	x.server, x.err = s.listen(pod, a)
	if x.err != nil && (before == nil || before.err.Error() != x.err.Error()) && !errors.Is(x.err, netns.ErrGone) {
		s.Log.Warn("the queues of a pod's radios cannot be offered to its apps", "pod", pod, "error", x.err)
	}
	s.mu.Lock()
	s.served[pod] = x
	s.mu.Unlock()
}

func (s *Servers) listen(pod string, a *membership.Attachment) (*radioqueue.Server, error) {
	namespace, err := s.Find(a)
	if err != nil {
		return nil, err
	}
	defer namespace.Close()
	listener, err := netns.Get(namespace, func() (net.Listener, error) { return net.Listen("unix", radioqueue.Address) })
	if err != nil {
		return nil, err
	}
	return radioqueue.Serve(listener, func() radioqueue.Report { return s.report(pod) }), nil
}

// report returns the queues of a pod's radios, by network.
func (s *Servers) report(pod string) (report radioqueue.Report) {
	for _, a := range s.Attachments(func(a *membership.Attachment) bool { return a.PodUID == pod && known(a) }) {
		report.Networks = append(report.Networks, radioqueue.Network{Network: a.Network, QueueFrames: s.Waiting(a)})
	}
	slices.SortFunc(report.Networks, func(a, b radioqueue.Network) int { return cmp.Compare(a.Network, b.Network) })
	return report
}

// end ends the servers of the selected pods.
func (s *Servers) end(which func(pod string, x *server) bool) {
	var ending []*radioqueue.Server
	s.mu.Lock()
	for pod, x := range s.served {
		if which(pod, x) {
			delete(s.served, pod)
			if x.server != nil {
				ending = append(ending, x.server)
			}
		}
	}
	s.mu.Unlock()
	for _, x := range ending {
		x.Close()
	}
}

// Serves reports whether a pod has a socket of radiod.
func (s *Servers) Serves(pod string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served[pod] != nil
}
