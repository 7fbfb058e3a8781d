package client

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/testcapture"
	"vignette.dev/vignette/internal/testjava"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
)

// Actions of the messages that only other clients send.
const (
	getCurrentMessage = "http://docs.oasis-open.org/wsn/bw-2/NotificationProducer/GetCurrentMessageRequest"
	registerPublisher = "http://docs.oasis-open.org/wsn/brw-2/RegisterPublisher/RegisterPublisherRequest"
)

// currentMessage requests the last message of a topic without prefixes.
func currentMessage(topic wire.TopicExpression) string {
	return fmt.Sprintf(`<wsnt:GetCurrentMessage><wsnt:Topic Dialect="%s">%s</wsnt:Topic></wsnt:GetCurrentMessage>`, topic.Dialect, topic.Text)
}

// registration requests that a publisher of a topic without prefixes is registered.
func registration(topic wire.TopicExpression) string {
	return fmt.Sprintf(`<wsbr:RegisterPublisher xmlns:wsbr="%s"><wsbr:Topic Dialect="%s">%s</wsbr:Topic><wsbr:Demand>false</wsbr:Demand>`+
		`<wsbr:InitialTerminationTime>%s</wsbr:InitialTerminationTime></wsbr:RegisterPublisher>`,
		wire.NSBrokered, topic.Dialect, topic.Text, wire.Time(time.Now().Add(time.Hour)))
}

// recorder passes connections on and keeps what goes over them.
type recorder struct {
	net.Listener
	mu          sync.Mutex
	connections [][2]*bytes.Buffer // what came from the client, and from the server
}

func record(t *testing.T, server string) *recorder {
	t.Helper()
	listener, err := net.Listen("tcp", address(t))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Listener: listener}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go r.pass(client, server)
		}
	}()
	return r
}

func (r *recorder) pass(client net.Conn, server string) {
	defer client.Close()
	broker, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer broker.Close()
	kept := [2]*bytes.Buffer{{}, {}}
	r.mu.Lock()
	r.connections = append(r.connections, kept)
	r.mu.Unlock()
	done := make(chan struct{}, 2)
	for i, way := range [2][2]net.Conn{{client, broker}, {broker, client}} {
		go func() {
			_, _ = io.Copy(io.MultiWriter(lockedWriter{&r.mu, kept[i]}, way[1]), way[0]) // kept before anybody can react to it
			done <- struct{}{}
		}()
	}
	<-done
}

type lockedWriter struct {
	*sync.Mutex
	io.Writer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	return w.Writer.Write(p)
}

// conversation of all messages of clients with a broker through a recorder.
func conversation(t *testing.T) (both [][2][]byte) {
	t.Helper()
	at := address(t)
	startBroker(t, at, wsn.BrokerConfig{})
	r := record(t, at)
	through := r.Addr().String()
	config := subscriber(through, "/PRT/+/location", "a b/#", "{urn:x}a/#")
	config.WSN = &wsn.Options{PullPoint: true}
	_, got := startClient(t, config)
	p, _ := startClient(t, publisher(through, 1))
	for _, content := range contents {
		publish(t, p, "/PRT/x.1/location", content)
		publish(t, p, "{urn:x}a/1", content)
	}
	eventually(t, "messages", func() bool { return len(got.got()) == 2*len(contents) })
	eventually(t, "a renewal", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(r.connections, func(kept [2]*bytes.Buffer) bool { return bytes.Contains(kept[1].Bytes(), []byte("RenewResponse")) })
	})
	session := &session{client: p, broker: through, subscriptions: nil}
	conn, err := net.Dial("tcp", through)
	if err != nil {
		t.Fatal(err)
	}
	session.use(conn)
	defer session.conn.Close()
	broker := reference{session.address(wire.BrokerPath), wire.BrokerPath}
	topic := wire.TopicOf("/PRT/x.1/location").Expression()
	for _, call := range []struct {
		action, body string
		fault        bool
	}{
		{getCurrentMessage, currentMessage(topic), false},
		{getCurrentMessage, currentMessage(wire.TopicOf("none").Expression()), true},
		{registerPublisher, registration(topic), false},
		{wire.ActionSubscribe, wire.Subscribe{Consumer: soap.EPR{Address: "http://127.0.0.1:9/"}, Termination: "2020-01-01T00:00:00Z"}.Body(), true},
		{wire.ActionSubscribe, wire.Subscribe{Consumer: soap.EPR{Address: "http://127.0.0.1:9/"}, Topics: []wire.TopicExpression{{Dialect: "urn:x"}}}.Body(), true},
	} {
		if _, err := session.call(t.Context(), broker, call.action, call.body); (err != nil) != call.fault {
			t.Errorf("%s: %v", call.action, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kept := range r.connections {
		both = append(both, [2][]byte{bytes.Clone(kept[0].Bytes()), bytes.Clone(kept[1].Bytes())})
	}
	return both
}

func TestTsharkDissectsAllMessages(t *testing.T) {
	messages := 0
	connections := conversation(t)
	for side, ports := range []string{"40000,8080", "8080,40000"} {
		// The capture is of what went one way, of all connections as if they were one, in segments of 32 kB.
		var dumps strings.Builder
		for _, connection := range connections {
			for segment := range slices.Chunk(connection[side], 32<<10) {
				dumps.WriteString(testcapture.HexDump(segment))
			}
		}
		read := testcapture.Read(t, testcapture.Of(t, dumps.String(), "-T", ports), "-d", "tcp.port==8080,http")
		messages += strings.Count(read, "eXtensible Markup Language")
		testcapture.NoneOf(t, strings.ToLower(read), "malformed")
	}
	if messages < 20 {
		t.Errorf("%d messages of XML; want 20 at least", messages)
	}
}

// TestMessagesAreValidByTheSchemasOfOASIS takes the schemas from CXF's jar.
func TestMessagesAreValidByTheSchemasOfOASIS(t *testing.T) {
	testtool.Need(t, "xmllint")
	schema := schemas(t)
	folder := t.TempDir()
	names := map[string]bool{}
	var files []string
	for _, connection := range conversation(t) {
		for _, way := range connection {
			for _, body := range bodies(t, way) {
				names[body.Name.Local] = true
				path := filepath.Join(folder, fmt.Sprintf("%s-%d.xml", body.Name.Local, len(files)))
				if err := os.WriteFile(path, body.Standalone(), 0o600); err != nil {
					t.Fatal(err)
				}
				files = append(files, path)
			}
		}
	}
	for _, want := range []string{"Notify", "Subscribe", "SubscribeResponse", "Renew", "RenewResponse", "CreatePullPoint", "CreatePullPointResponse", "GetMessages",
		"GetMessagesResponse", "GetCurrentMessage", "GetCurrentMessageResponse", "RegisterPublisher", "RegisterPublisherResponse",
		"NoCurrentMessageOnTopicFault", "UnacceptableInitialTerminationTimeFault", "TopicExpressionDialectUnknownFault"} {
		if !names[want] {
			t.Errorf("there is no %s among the messages: %v", want, names)
		}
	}
	if out, err := exec.Command("xmllint", append([]string{"--noout", "--nonet", "--schema", schema}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%.4000s", err, out)
	}
}

// schemas unpacks them and makes one that has them all.
func schemas(t *testing.T) string {
	t.Helper()
	_, libraries := testjava.Jars(t, pom)
	found, err := filepath.Glob(filepath.Join(libraries, "cxf-services-wsn-api-*.jar"))
	if err != nil || len(found) != 1 {
		t.Fatalf("jars with the schemas: %v, %v", found, err)
	}
	jar, err := zip.OpenReader(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer jar.Close()
	folder := t.TempDir()
	for _, file := range jar.File {
		if !strings.HasSuffix(file.Name, ".xsd") {
			continue
		}
		text, err := fs.ReadFile(jar, file.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file.Name)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "all.xsd")
	err = os.WriteFile(path, []byte(`<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema">`+
		`<xsd:import namespace="`+wire.NSBase+`" schemaLocation="b-2.xsd"/><xsd:import namespace="`+wire.NSBrokered+`" schemaLocation="br-2.xsd"/></xsd:schema>`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// bodies of all envelopes in what went one way; of faults what their detail has.
func bodies(t *testing.T, stream []byte) (found []*soap.Element) {
	t.Helper()
	const first, last = "<?xml", "</soap:Envelope>"
	for {
		begin := bytes.Index(stream, []byte(first))
		if begin < 0 {
			return found
		}
		end := bytes.Index(stream[begin:], []byte(last)) + begin + len(last)
		root, err := soap.ParseXML(stream[begin:end])
		if err != nil {
			t.Fatal(err)
		}
		stream = stream[end:]
		body := root.Child(root.Name.Space, "Body").Children[0]
		if detail := body.Child("", "detail"); detail != nil {
			body = detail.Children[0]
		}
		found = append(found, body)
	}
}
