package quietio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"
)

// pair is a connection on loopback, the first end of which is read quietly.
func pair(t *testing.T) (*Conn, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	near, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return NewConn(near), far
}

func TestAConnectionGivesTheBytesThatCameInWhateverPiecesAreAskedFor(t *testing.T) {
	want := make([]byte, 300_000)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's course
	for i := range want {
		want[i] = byte(random.UintN(256))
	}
	near, far := pair(t)
	go func() {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(9000))
			if _, err := far.Write(rest[:n]); err != nil {
				t.Error(err)
			}
			rest = rest[n:]
		}
		far.Close()
	}()
	var have []byte
	pieces := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test's course
	for {
		piece := make([]byte, 1+pieces.IntN(2*bufferBytes))
		n, err := near.Read(piece)
		have = append(have, piece[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%d bytes, not the %d that were sent", len(have), len(want))
	}
}

func TestAConnectionThatIsNoSocketIsReadAsEver(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		_, _ = far.Write([]byte("twelve bytes"))
		far.Close()
	}()
	c := NewConn(near)
	if err := iotest.TestReader(c, []byte("twelve bytes")); err != nil {
		t.Error(err)
	}
	if _, err := c.SyscallConn(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v; want to hear that it has no socket", err)
	}
}

func TestReadingEndsAsTheConnectionDoes(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(near *Conn, far net.Conn) error
		want error
		text string
	}{
		"closed by the other side": {func(_ *Conn, far net.Conn) error { return far.Close() }, io.EOF, "EOF"},
		"closed by ourselves":      {func(near *Conn, _ net.Conn) error { return near.Close() }, net.ErrClosed, "read tcp 127.0.0.1:"},
		"a deadline": {func(near *Conn, _ net.Conn) error { return near.SetReadDeadline(time.Now()) },
			os.ErrDeadlineExceeded, "read tcp 127.0.0.1:"},
		"reset by the other side": {func(_ *Conn, far net.Conn) error {
			return errors.Join(far.(*net.TCPConn).SetLinger(0), far.Close())
		}, unix.ECONNRESET, "read: connection reset by peer"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			ended := make(chan error)
			go func() {
				_, err := near.Read(make([]byte, 1))
				ended <- err
			}()
			time.Sleep(10 * time.Millisecond) // the reader waits, or will find the end at once: both must do
			if err := c.end(near, far); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v; want %v with %q", err, c.want, c.text)
			}
		})
	}
}

func TestADeadlineThatIsOverLeavesNothingOut(t *testing.T) {
	near, far := pair(t)
	if err := near.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := near.Read(make([]byte, 9)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("%v; want a timeout", err)
	}
	if _, err := far.Write([]byte("later")); err != nil {
		t.Fatal(err)
	}
	if err := near.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	have := make([]byte, 5)
	if _, err := io.ReadFull(near, have); err != nil || string(have) != "later" {
		t.Errorf("%q, %v; want what came after the deadline", have, err)
	}
}

func TestDatagramsComeWholeWithWhatTheKernelSaysOfThem(t *testing.T) {
	receiver, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	raw, err := receiver.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(descriptor uintptr) {
		_ = unix.SetsockoptInt(int(descriptor), unix.IPPROTO_IP, unix.IP_RECVTTL, 1)
	}); err != nil {
		t.Fatal(err)
	}
	datagrams, err := NewDatagrams(receiver, make([]byte, 100), make([]byte, 64))
	if err != nil {
		t.Fatal(err)
	}
	sender, err := net.Dial("udp4", receiver.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	for _, want := range []string{"first", "", "a longer one", "4"} {
		if _, err := sender.Write([]byte(want)); err != nil {
			t.Fatal(err)
		}
		have, extra, err := datagrams.Receive()
		if err != nil || string(have) != want {
			t.Errorf("%q, %v; want %q", have, err, want)
		}
		messages, err := unix.ParseSocketControlMessage(extra)
		if err != nil || len(messages) != 1 || binary.NativeEndian.Uint32(messages[0].Data) != 64 {
			t.Errorf("%v, %v; want the time to live of 64 beside it", messages, err)
		}
		if got, want := datagrams.From().String(), sender.LocalAddr().String(); got != want {
			t.Errorf("from %s; want %s", got, want)
		}
	}
	time.AfterFunc(10*time.Millisecond, func() { receiver.Close() })
	if _, _, err := datagrams.Receive(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v; want to hear that the socket is closed", err)
	}
}

func TestAFileTakesWhatIsWrittenAtItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFile(file)
	for _, text := range []string{"one\n", "", "two\n"} {
		if n, err := f.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("late")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v; want to hear that the file is closed", err)
	}
	if have, _ := os.ReadFile(path); string(have) != "one\ntwo\n" {
		t.Errorf("%q", have)
	}
}

func TestIncompleteWritesAreReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path) // for reading only
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := NewFile(file).Write([]byte("x")); !errors.Is(err, unix.EBADF) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v; want the file and why", err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	if _, err := NewFile(full).Write([]byte("x")); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v; want to hear that a device is full", err)
	}
}

func TestDropsAreToldOnceEach(t *testing.T) {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	if err := errors.Join(socket.SetReadBuffer(1), Control(socket, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) })); err != nil {
		t.Fatal(err)
	}
	sender, err := net.Dial("udp4", socket.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sender.Close() })
	received, err := NewDatagrams(socket, make([]byte, 2000), make([]byte, 64))
	if err != nil {
		t.Fatal(err)
	}
	sent := uint32(0)
	send := func(size int) {
		if _, err := sender.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	var drops Drops
	told, came := uint32(0), uint32(0)
	for round := range 2 {
		before, begun := told, time.Now()
		for range 50 {
			send(1000)
		}
		for told == before || told+came < sent {
			if time.Since(begun) > time.Minute {
				t.Fatalf("round %d: of %d datagrams %d came, and %d are told as dropped", round, sent, came, told)
			}
			_ = socket.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			_, control, err := received.Receive()
			if err != nil {
				send(1) // the kernel counts drops beside the next datagram
				continue
			}
			came++
			told += drops.More(control)
			told += drops.More(control) // nothing new
		}
		if told+came != sent || uint32(drops) != told {
			t.Errorf("round %d: of %d datagrams %d came, %d are told as dropped, and %d in all", round, sent, came, told, drops)
		}
	}
}
