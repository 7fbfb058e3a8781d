package wire

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/holder"
)

func TestParseArgsTakesTheFirstOfEachKey(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want Pod
		ok   bool
	}{
		"as Multus passes them": {"IgnoreUnknown=true;K8S_POD_NAMESPACE=team;K8S_POD_NAME=p;K8S_POD_UID=u;K8S_POD_UID=other;K8S_POD_NAME=other",
			Pod{"u", "team", "p"}, true},
		"with an equals sign in a value": {"K8S_POD_UID=a=b", Pod{UID: "a=b"}, true},
		"an empty first one counts":      {"K8S_POD_UID=;K8S_POD_UID=u", Pod{}, false},
		"without a UID":                  {"K8S_POD_NAME=p", Pod{Name: "p"}, false},
		"empty":                          {"", Pod{}, false},
		"nonsense":                       {";;=;x", Pod{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseArgs(c.args)
			if got != c.want || (err == nil) != c.ok {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), "K8S_POD_UID") {
				t.Errorf("error %v does not name K8S_POD_UID", err)
			}
		})
	}
}

func FuzzParseArgs(f *testing.F) {
	f.Add("IgnoreUnknown=true;K8S_POD_UID=u;K8S_POD_UID=v")
	f.Add("K8S_POD_UID")
	f.Fuzz(func(t *testing.T, args string) {
		var first string
		for _, pair := range strings.Split(args, ";") {
			if uid, ok := strings.CutPrefix(pair, "K8S_POD_UID="); ok {
				first = uid
				break
			}
		}
		if pod, err := ParseArgs(args); pod.UID != first || (err == nil) != (first != "") {
			t.Errorf("ParseArgs(%q) = %+v, %v; want the first UID, %q, or an error where it is empty", args, pod, err, first)
		}
	})
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"command":"ADD","containerID":"c","interface":"vhf","podUID":"u"}`), uint8(1))
	f.Add([]byte(`{"command":5}`), uint8(0))
	f.Add([]byte(`[`), uint8(3))
	f.Fuzz(func(t *testing.T, text []byte, descriptors uint8) {
		if len(text) == 0 || len(text) > MaxMessage {
			return // no packet
		}
		server, file, err := holder.Pair()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		plugin, err := holder.Conn(file)
		if err != nil {
			t.Fatal(err)
		}
		defer plugin.Close()
		var rights []byte
		if count := int(descriptors % 4); count > 0 {
			rights = unix.UnixRights(make([]int, count)...) // standard input, several times
		}
		if _, _, err := plugin.WriteMsgUnix(text, rights, nil); err != nil {
			t.Fatal(err)
		}
		request, namespace, err := Receive(server)
		if received := namespace != nil; received != (rights != nil && err == nil) {
			t.Errorf("a descriptor was sent: %v, received: %v, %v", rights != nil, received, err)
		}
		if namespace != nil {
			_ = namespace.Close()
		}
		if err != nil {
			return
		}
		again, err := json.Marshal(request)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", request, err)
		}
		var same Request
		if err := json.Unmarshal(again, &same); err != nil || !reflect.DeepEqual(same, request) {
			t.Errorf("%+v became %+v, %v", request, same, err)
		}
	})
}

func TestARequestArrivesWithItsNamespace(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	want := Request{Command: "ADD", PodUID: "u", Attachment: Attachment{ContainerID: "c", Interface: "vhf"}}
	served := make(chan string, 1)
	go func() {
		conn, err := listener.AcceptUnix()
		if err != nil {
			served <- err.Error()
			return
		}
		defer conn.Close()
		got, namespace, err := Receive(conn)
		switch {
		case err != nil:
			served <- err.Error()
		case got.PodUID != want.PodUID || got.Attachment != want.Attachment || !sameFile(namespace):
			served <- "another request or namespace"
		default:
			served <- ""
		}
		_ = Reply(conn, Answer{MAC: "m"})
	}()
	namespace, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.Close()
	answer, err := Ask(socket, time.Second, want, namespace)
	if err != nil || answer.MAC != "m" {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if wrong := <-served; wrong != "" {
		t.Error(wrong)
	}
}

func sameFile(namespace *os.File) bool {
	var got, own unix.Stat_t
	return namespace != nil && unix.Fstat(int(namespace.Fd()), &got) == nil && unix.Stat("/proc/self/ns/net", &own) == nil && got.Ino == own.Ino
}

func TestAskWithoutRadiodSaysSo(t *testing.T) {
	_, err := Ask(filepath.Join(t.TempDir(), "nobody"), time.Second, Request{}, nil)
	if err == nil || !strings.Contains(err.Error(), "radiod at") {
		t.Errorf("error %v; want one that says where radiod should be", err)
	}
}
