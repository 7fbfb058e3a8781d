package worker

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radioqueue"
)

// queueServers lets apps ask how many frames wait at their node's radios (package radioqueue), by a socket in each
// pod's namespace. A socket keeps its namespace alive, so RemovePinned checks the pods that have one.
type queueServers struct {
	wake chan struct{}

	mu     sync.Mutex
	served map[string]*queueServer // by pod
}

// queueServer is one pod's server; nil if it could not be made.
type queueServer struct {
	namespace netns.Identity
	server    *radioqueue.Server
	err       error
}

// retryQueues is when a failed socket is tried again.
const retryQueues = time.Second

// RunQueues serves the pods' queues until ctx ends.
func (m *Manager) RunQueues(ctx context.Context) error {
	again := time.NewTicker(retryQueues)
	defer again.Stop()
	for {
		m.reconcileQueues()
		select {
		case <-ctx.Done():
			m.endQueues(func(string, *queueServer) bool { return true })
			return nil
		case <-m.queues.wake:
		case <-again.C:
		}
	}
}

// reconcileQueues makes and ends sockets so that each pod with a native radio has one.
func (m *Manager) reconcileQueues() {
	pods := map[string]*attachment{}
	m.mu.Lock()
	for _, a := range m.attachments {
		if a.port != nil && a.Guest == nil { // a guest cannot reach the socket
			pods[a.PodUID] = a
		}
	}
	m.mu.Unlock()
	m.endQueues(func(pod string, s *queueServer) bool { return pods[pod] == nil || pods[pod].Namespace != s.namespace })
	for pod, a := range pods {
		m.serveQueues(pod, a)
	}
}

func (m *Manager) serveQueues(pod string, a *attachment) {
	m.queues.mu.Lock()
	before := m.queues.served[pod]
	m.queues.mu.Unlock()
	if before != nil && before.server != nil {
		return
	}
	s := &queueServer{namespace: a.Namespace}
	s.server, s.err = m.listenQueues(pod, a)
	if s.err != nil && (before == nil || before.err.Error() != s.err.Error()) && !errors.Is(s.err, netns.ErrGone) {
		m.Log.Warn("the queues of a pod's radios cannot be offered to its apps", "pod", pod, "error", s.err)
	}
	m.queues.mu.Lock()
	m.queues.served[pod] = s
	m.queues.mu.Unlock()
}

func (m *Manager) listenQueues(pod string, a *attachment) (*radioqueue.Server, error) {
	namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace)
	if err != nil {
		return nil, err
	}
	defer namespace.Close()
	var listener net.Listener
	err = netns.Do(namespace, func() (err error) {
		listener, err = net.Listen("unix", radioqueue.Address)
		return err
	})
	if err != nil {
		return nil, err
	}
	return radioqueue.Serve(listener, func() radioqueue.Report { return m.queuesOf(pod) }), nil
}

// queuesOf returns the queues of a pod's radios, by network. Queues of radios that EMANE carries are not
// known.
func (m *Manager) queuesOf(pod string) (report radioqueue.Report) {
	ports := map[string]*driver.Port{}
	m.mu.Lock()
	for _, a := range m.attachments {
		if a.PodUID == pod && a.port != nil {
			ports[a.Network] = a.port
		}
	}
	m.mu.Unlock()
	for network, port := range ports {
		report.Networks = append(report.Networks, radioqueue.Network{Network: network, QueueFrames: port.CurrentCounters().InFlight})
	}
	slices.SortFunc(report.Networks, func(a, b radioqueue.Network) int { return cmp.Compare(a.Network, b.Network) })
	return report
}

// endQueues ends the servers of the selected pods.
func (m *Manager) endQueues(which func(pod string, s *queueServer) bool) {
	var ending []*radioqueue.Server
	m.queues.mu.Lock()
	for pod, s := range m.queues.served {
		if which(pod, s) {
			delete(m.queues.served, pod)
			if s.server != nil {
				ending = append(ending, s.server)
			}
		}
	}
	m.queues.mu.Unlock()
	for _, server := range ending {
		server.Close()
	}
}

// hasQueueServer reports whether a pod has a socket of radiod.
func (m *Manager) hasQueueServer(pod string) bool {
	m.queues.mu.Lock()
	defer m.queues.mu.Unlock()
	return m.queues.served[pod] != nil
}
