package holder

import (
	"encoding/json"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/testtool"
)

// serve makes a holder serve a worker, and returns the worker's end.
func serve(t testing.TB, h *Holder) (worker *net.UnixConn, ended chan error) {
	t.Helper()
	parent, file, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	worker, err = Conn(file)
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() {
		ended <- h.Serve(parent)
		_ = parent.Close()
	}()
	return worker, ended
}

func TestDescriptorsOutliveTheWorkerThatHandedThemIn(t *testing.T) {
	h := &Holder{}
	defer h.Close()
	first, ended := serve(t, h)
	client, held, err := Connect(first)
	if err != nil || len(held) != 0 {
		t.Fatalf("held %v, %v; want nothing yet", held, err)
	}
	file, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var before, after unix.Stat_t
	for _, id := range []string{"kept", "dropped"} {
		if err := client.Hold(id, int(file.Fd())); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Drop("dropped"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstat(int(file.Fd()), &before); err != nil {
		t.Fatal(err)
	}
	_, _ = file.Close(), first.Close() // the worker ends
	<-ended
	second, _ := serve(t, h)
	defer second.Close()
	_, held, err = Connect(second)
	if err != nil || len(held) != 1 {
		t.Fatalf("held %v, %v; want what was kept", held, err)
	}
	if err := unix.Fstat(held["kept"], &after); err != nil || after.Ino != before.Ino {
		t.Errorf("the descriptor is another one (%v)", err)
	}
	_ = unix.Close(held["kept"])
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"do":"hold","id":"pod_vhf"}`), true)
	f.Add([]byte(`{"do":"drop","id":"pod_vhf"}`), false)
	f.Add([]byte(`{"do":"nonsense"}`), true)
	f.Add([]byte(`{`), true)
	f.Fuzz(func(t *testing.T, text []byte, with bool) {
		if len(text) == 0 || len(text) > maxMessage {
			return // no packet
		}
		before := testtool.Descriptors(t)
		h := &Holder{}
		worker, ended := serve(t, h)
		if _, _, err := Connect(worker); err != nil {
			t.Fatal(err)
		}
		var rights []byte
		if with {
			rights = unix.UnixRights(0)
		}
		if _, _, err := worker.WriteMsgUnix(text, rights, nil); err != nil {
			t.Fatal(err)
		}
		_ = worker.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, _, answered := receive(worker)
		var want message
		if valid := json.Unmarshal(text, &want) == nil; valid != (answered == nil) {
			t.Errorf("%q: answer %v; want one to a message, and only to one", text, answered)
		}
		holds := 0
		if answered == nil && want.Do == "hold" && with {
			holds = 1
		}
		if h.Held() != holds {
			t.Errorf("%q: %d descriptors held; want %d", text, h.Held(), holds)
		}
		_ = worker.Close()
		<-ended
		h.Close()
		for deadline := time.Now().Add(10 * time.Second); testtool.Descriptors(t) > before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q: %d descriptors are open; there were %d", text, testtool.Descriptors(t), before)
			}
		}
	})
}
