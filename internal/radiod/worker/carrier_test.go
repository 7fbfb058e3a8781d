package worker

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The worker's end closes the TAP's descriptor in the middle of the attachment's removal, which would close
// it too.
func TestAPodThatGoesAsTheWorkerEndsClosesNothingOfOthers(t *testing.T) {
	m := newManager(t)
	p := newPod(t, "pod-1")
	n := networkOf("run-1", "vhf", p.uid)
	if err := m.SetNetwork(n); err != nil {
		t.Fatal(err)
	}
	p.attach(t, m, "vhf")
	var a *attachment
	for _, a = range m.attachments {
	}
	m.Close()
	others, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, a.fd)
	if err != nil || others != a.fd {
		t.Fatalf("descriptor %d, %v; want %d, which the worker has closed", others, err, a.fd)
	}
	_ = m.carrierOf(a).destroy(a) // what becomes of the TAP is the next worker's
	if err := unix.Close(others); err != nil {
		t.Errorf("another's descriptor was closed: %v", err)
	}
}
