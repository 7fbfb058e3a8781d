package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/radiod/framering"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/wholefile"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// fakeArchive is an archive in memory that keeps the server's rules.
type fakeArchive struct {
	mu    sync.Mutex
	files map[string][]byte
	// away makes it fail, closed answers that the run is sealed, stingy takes at most that many bytes of a
	// piece. refusal is its answer, if set.
	away, closed bool
	stingy       int
	refusal      *client.Error
}

func newFakeArchive() *fakeArchive { return &fakeArchive{files: map[string][]byte{}} }

func (s *fakeArchive) AppendCapture(_ context.Context, host, uid string, which client.Capture, offset int64, content io.Reader) (runapi.LogPosition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return runapi.LogPosition{}, errors.New("the archive is away")
	}
	if s.closed {
		return runapi.LogPosition{}, &client.Error{Status: http.StatusGone}
	}
	if s.refusal != nil {
		return runapi.LogPosition{}, s.refusal
	}
	piece, err := io.ReadAll(content)
	if err != nil {
		return runapi.LogPosition{}, err
	}
	if host != "host-a" {
		return runapi.LogPosition{}, fmt.Errorf("host %s", host)
	}
	path := uid + "/" + which.Path()
	have := s.files[path]
	size := int64(len(have))
	known := min(size-offset, int64(len(piece)))
	if offset > size || known > 0 && !bytes.Equal(have[offset:offset+known], piece[:known]) {
		return runapi.LogPosition{}, &client.Error{Status: http.StatusConflict, Size: &size}
	}
	fresh := piece[max(known, 0):]
	if s.stingy > 0 && len(fresh) > s.stingy {
		// As if the connection broke, after a part was archived.
		s.files[path] = append(have, fresh[:s.stingy]...)
		return runapi.LogPosition{}, errors.New("the connection broke")
	}
	s.files[path] = append(have, fresh...)
	return runapi.LogPosition{Size: int64(len(s.files[path]))}, nil
}

func (s *fakeArchive) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *fakeArchive) file(path string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.files[path])
}

// bench is a recorder with clocks of its own that a test drives by hand.
type bench struct {
	*Recorder
	t     *testing.T
	shelf *fakeArchive
	now   int64 // monotonic
	step  int64 // of the real-time clock
}

const clockBase = 1_700_000_000e9

// newBench makes a bench whose recorder has ended what earlier ones left.
func newBench(t *testing.T, directory string, archive *fakeArchive, change ...func(*Options)) *bench {
	t.Helper()
	b := openBench(t, directory, archive, change...)
	if err := b.endLeft(); err != nil {
		t.Fatal(err)
	}
	return b
}

func openBench(t *testing.T, directory string, archive *fakeArchive, change ...func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, shelf: archive, now: 1000}
	options := Options{Directory: directory, SpoolBytes: 64 << 20, RingBytes: 1 << 20, Archive: archive, Host: "host-a",
		EpochOffset: func() int64 { return clockBase + b.step }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, c := range change {
		c(&options)
	}
	var err error
	if b.Recorder, err = Open(options); err != nil {
		t.Fatal(err)
	}
	return b
}

var here = Place{RunUID: "run-1", NetworkUID: "net-1", Network: "lan", Node: "nor"}

const herePath = "run-1/captures/run/lan/nor.pcapng"

func (b *bench) change(before *Tap, captures ...v1alpha1.RadioCapture) *Tap {
	b.t.Helper()
	tap, err := b.SetCaptures(before, here, captures, EndStopped, func(*Tap) error { return nil })
	if err != nil {
		b.t.Fatal(err)
	}
	return tap
}

// pass has a tap take a frame now.
func (b *bench) pass(tap *Tap, out bool, data []byte) { tap.FrameAt(b.now, out, data) }

func (b *bench) mustSave() {
	b.t.Helper()
	if err := b.save(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) ship() {
	for _, s := range b.streamsOf("") {
		for range 50 {
			if s.nothingToShip() {
				break
			}
			if _, err := s.ship(b.t.Context(), b.Archive, b.Host); err != nil && b.shelf.stingy == 0 && !b.shelf.away {
				b.t.Fatal(err)
			}
		}
	}
}

// sample returns the newest sample of the only capture.
func (b *bench) sample() runapi.CaptureSample {
	b.Samples("run-1", 1)
	for _, s := range b.streamsOf("run-1") {
		sample, _ := s.sample(2, true)
		return sample
	}
	return runapi.CaptureSample{}
}

func frameOf(length int) []byte {
	f := make([]byte, length)
	for i := range f {
		f[i] = byte(i)
	}
	return f
}

// packet is a frame read back from a capture.
type packet struct {
	stamp  int64
	out    bool
	length int
	data   []byte
}

// read takes a file apart, and fails where it is not whole.
func read(t *testing.T, content []byte) (packets []packet) {
	t.Helper()
	var whole pcapng.BlockScanner
	if _, err := whole.Write(content); err != nil || whole.Incomplete() {
		t.Fatalf("a file of %d bytes is not whole: %v", len(content), err)
	}
	if len(content) > 0 && binary.LittleEndian.Uint32(content) != 0x0A0D0D0A {
		t.Fatal("the file does not begin with a section")
	}
	for rest := content; len(rest) > 0; rest = rest[binary.LittleEndian.Uint32(rest[4:]):] {
		if binary.LittleEndian.Uint32(rest) != 6 {
			continue
		}
		kept := binary.LittleEndian.Uint32(rest[20:])
		flags := binary.LittleEndian.Uint32(rest[28+(kept+3)&^3+4:])
		packets = append(packets, packet{int64(binary.LittleEndian.Uint32(rest[12:]))<<32 | int64(binary.LittleEndian.Uint32(rest[16:])),
			flags == 2, int(binary.LittleEndian.Uint32(rest[24:])), rest[28 : 28+kept]})
	}
	return packets
}

func TestCapturedFramesArriveInTheArchiveWithTimesAndDirections(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive())
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	var want []packet
	for i := range 3000 {
		b.now += int64(i % 7)
		f := frameOf(20 + i%1400)
		b.pass(tap, i%3 == 0, f)
		want = append(want, packet{clockBase + b.now, i%3 == 0, len(f), f})
		if i%500 == 0 {
			b.drain()
		}
	}
	b.drain()
	b.ship()
	got := read(t, b.shelf.file(herePath))
	if !slices.EqualFunc(got, want, func(a, b packet) bool {
		return a.stamp == b.stamp && a.out == b.out && a.length == b.length && bytes.Equal(a.data, b.data)
	}) {
		t.Fatalf("%d frames of %d came back as they were sent", len(got), len(want))
	}
	if s := b.sample(); s.Frames != 3000 || s.Ended != "" || len(s.Dropped) > 0 {
		t.Errorf("sample %+v", s)
	}
	if b.spool.use > 2<<20 {
		t.Errorf("%d bytes of the spool are in use though the archive has everything", b.spool.use)
	}
}

func TestAFullRingCountsWhatItDrops(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive(), func(o *Options) { o.RingBytes = 4096 })
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	for range 100 {
		b.pass(tap, true, frameOf(500))
	}
	b.drain()
	s := b.sample()
	if s.Frames == 0 || s.Dropped[ringFull] == 0 || s.Frames+s.Dropped[ringFull] != 100 {
		t.Errorf("of 100 frames %d are captured and %v dropped", s.Frames, s.Dropped)
	}
}

func TestFilterSnapLengthAndLimitHoldForEachCaptureByItself(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive())
	udp := append(append(make([]byte, 12), 8, 0, 0x45), make([]byte, 300)...)
	udp[23], udp[36], udp[37] = 17, 2, 186 // port 698
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"}, v1alpha1.RadioCapture{Name: "olsr", Filter: "udp port 698", SnapLengthBytes: 20},
		v1alpha1.RadioCapture{Name: "short", LimitBytes: 3000}, v1alpha1.RadioCapture{Name: "other", Nodes: []string{"prt"}})
	for i := range 20 {
		b.pass(tap, true, frameOf(400))
		if i%2 == 0 {
			b.pass(tap, false, udp)
		}
	}
	b.drain()
	b.ship()
	all, olsr := read(t, b.shelf.file(herePath)), read(t, b.shelf.file("run-1/captures/olsr/lan/nor.pcapng"))
	if len(all) != 30 {
		t.Errorf("%d frames without a filter, want 30", len(all))
	}
	if len(olsr) != 10 || len(olsr[0].data) != 20 || olsr[0].length != len(udp) {
		t.Errorf("%d frames to port 698, want 10 with 20 bytes each", len(olsr))
	}
	short := b.shelf.file("run-1/captures/short/lan/nor.pcapng")
	if n := len(read(t, short)); len(short) > 3000 || n == 0 || n > 8 {
		t.Errorf("a capture of at most 3000 bytes has %d, with %d frames", len(short), n)
	}
	for _, s := range b.Samples("run-1", 5) {
		if want := map[string]string{"short": EndLimit}[s.Capture]; s.Ended != want || s.Capture == "short" && s.Frames+s.Dropped[byLimit] != 30 {
			t.Errorf("sample %+v, want it ended by %q", s, want)
		}
	}
	if n := len(b.Samples("run-1", 6)); n != 0 {
		t.Errorf("%d samples of captures without changes, want none", n)
	}
	b.Repeat("run-1")
	if n := len(b.Samples("run-1", 7)); n != 3 {
		t.Errorf("%d samples are repeated, want those of 3 captures", n)
	}
	if _, err := os.Stat(filepath.Join(b.Directory, "run-1", "other")); err == nil {
		t.Error("a capture of other nodes is there")
	}
}

func TestASpoolWithoutRoomDropsAndGoesOnWhenTheArchiveIsBack(t *testing.T) {
	archive := newFakeArchive()
	b := newBench(t, t.TempDir(), archive, func(o *Options) { o.SpoolBytes = 200 << 10 })
	archive.away = true
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	for range 200 {
		b.pass(tap, true, frameOf(1000))
		b.drain()
	}
	b.ship()
	before := b.sample()
	if before.Dropped[spoolFull] == 0 || before.Frames+before.Dropped[spoolFull] != 200 {
		t.Fatalf("of 200 frames %d are captured and %v dropped", before.Frames, before.Dropped)
	}
	archive.set(func() { archive.away = false })
	b.ship()
	b.pass(tap, true, frameOf(1000))
	b.drain()
	b.ship()
	if got := len(read(t, archive.file(herePath))); uint64(got) != before.Frames+1 {
		t.Errorf("%d frames are archived, want %d", got, before.Frames+1)
	}
}

func TestACaptureThatNeverHadRoomEndsAllTheSame(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive(), func(o *Options) { o.SpoolBytes = 10 })
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	b.pass(tap, true, frameOf(300))
	b.change(tap)
	b.drain()
	b.ship()
	if s := b.sample(); s.Ended != EndStopped || s.Dropped[spoolFull] != 1 || !b.Completed("run-1") {
		t.Errorf("%+v, completed: %v; want its end, and one frame dropped", s, b.Completed("run-1"))
	}
}

func TestAConnectionThatBreaksAmidAPieceLosesAndRepeatsNothing(t *testing.T) {
	archive := newFakeArchive()
	b := newBench(t, t.TempDir(), archive)
	archive.stingy = 777
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	for range 30 {
		b.pass(tap, true, frameOf(1000))
	}
	b.drain()
	b.ship()
	archive.set(func() { archive.stingy = 0 })
	b.ship()
	if got := len(read(t, archive.file(herePath))); got != 30 {
		t.Errorf("%d frames are archived, want 30", got)
	}
}

// A worker that is killed leaves its segments as they are, perhaps with half a block at the end.
func TestAKilledWorkersCaptureGoesOnWithoutATornBlock(t *testing.T) {
	archive, directory := newFakeArchive(), t.TempDir()
	frames := uint64(0)
	for life := range 4 {
		b := newBench(t, directory, archive)
		tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
		for i := range 50 {
			b.pass(tap, true, frameOf(300))
			if i == 25 {
				b.drain()
				b.mustSave()
				if life%2 == 0 {
					b.ship()
				}
			}
		}
		b.drain() // written, but not in the record
		frames += 50
		segments, err := filepath.Glob(filepath.Join(directory, "run-1", "run", "lan", "nor", "*"+segmentSuffix))
		if err != nil || len(segments) == 0 {
			t.Fatalf("segments %v, %v", segments, err)
		}
		if life == 3 {
			b.ship()
			if s := b.sample(); s.Frames != frames {
				t.Errorf("%d frames are counted over all workers, want %d", s.Frames, frames)
			}
			break
		}
		slices.Sort(segments)
		torn, err := os.OpenFile(segments[len(segments)-1], os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := torn.Write(pcapng.AppendPacket(nil, 1, true, 500, frameOf(500))[:100+life]); err != nil {
			t.Fatal(err)
		}
		_ = torn.Close()
	}
	content := archive.file(herePath)
	if got := len(read(t, content)); uint64(got) != frames {
		t.Errorf("%d frames are archived, want %d", got, frames)
	}
	if got := bytes.Count(content, []byte("vignette radiod")); got != 4 {
		t.Errorf("%d sections, want one of each worker", got)
	}
}

func TestAHostThatLostItsSpoolContinuesTheArchivesFile(t *testing.T) {
	archive := newFakeArchive()
	for range 3 {
		b := newBench(t, t.TempDir(), archive)
		tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
		b.pass(tap, true, frameOf(300))
		b.drain()
		b.ship()
	}
	if got := len(read(t, archive.file(herePath))); got != 3 {
		t.Errorf("%d frames are archived, want 3", got)
	}
}

func TestAnArchiveThatLostItsFileGetsOneThatCanBeRead(t *testing.T) {
	archive := newFakeArchive()
	b := newBench(t, t.TempDir(), archive)
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	for i := range 100 {
		b.pass(tap, true, frameOf(1200))
		b.drain()
		b.ship()
		if i == 70 {
			archive.set(func() { clear(archive.files) })
		}
	}
	if got := len(read(t, archive.file(herePath))); got < 29 {
		t.Errorf("%d frames are archived, want the 29 after the loss at least", got)
	}
}

func TestTheEndIsReportedOnceTheArchiveHasEverything(t *testing.T) {
	archive := newFakeArchive()
	b := newBench(t, t.TempDir(), archive)
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	b.pass(tap, true, frameOf(300))
	if got := b.change(tap); got != nil {
		t.Fatal("a port without captures has a tap")
	}
	b.drain()
	if s := b.sample(); s.Ended != "" || s.Frames != 1 {
		t.Errorf("before shipping: %+v", s)
	}
	if b.Completed("run-1") {
		t.Error("it is over before it is shipped")
	}
	b.ship()
	if s := b.sample(); s.Ended != EndStopped {
		t.Errorf("after shipping: %+v", s)
	}
	if !b.Completed("run-1") {
		t.Error("it is not over after all is shipped and told")
	}
	if got, news := b.streamsOf("run-1")[0].sample(9, true); news {
		t.Errorf("told again: %+v", got)
	}
	if len(b.rings) != 0 {
		t.Errorf("%d rings are left", len(b.rings))
	}
	if err := b.Forget("run-1"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(b.Directory); err != nil || len(left) != 0 || b.spool.use != 0 {
		t.Errorf("left %v with %d bytes, %v", left, b.spool.use, err)
	}
}

func TestASealedRunTakesNoMoreAndHoldsNoSpool(t *testing.T) {
	archive := newFakeArchive()
	b := newBench(t, t.TempDir(), archive)
	archive.closed = true
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	b.pass(tap, true, frameOf(300))
	b.drain()
	b.ship()
	b.pass(tap, true, frameOf(300))
	b.drain()
	if s := b.sample(); s.Dropped[refusedByArchive] != 1 || b.spool.use != 0 {
		t.Errorf("%+v, %d bytes of the spool in use", s, b.spool.use)
	}
}

func TestACaptureEndsWhenTheArchiveHasNoMoreRoomForIt(t *testing.T) {
	for _, c := range []struct {
		reason   string
		refusal  client.Error
		archived uint64
	}{
		{byQuota, client.Error{Status: http.StatusInsufficientStorage, Quota: true}, 1},
		{byQuota, client.Error{Status: http.StatusInsufficientStorage, Quota: true}, 0},
		{byLimit, client.Error{Status: http.StatusRequestEntityTooLarge}, 1},
	} {
		archive := newFakeArchive()
		b := newBench(t, t.TempDir(), archive)
		tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
		for range c.archived {
			b.pass(tap, true, frameOf(300))
			b.drain()
			b.ship()
		}
		archive.set(func() { archive.refusal = &c.refusal })
		for range 3 {
			b.pass(tap, true, frameOf(300))
			b.drain()
			b.ship()
		}
		if s := b.sample(); s.Ended != c.reason || s.Frames != c.archived || s.Dropped[c.reason] != 3 || b.spool.use != 0 {
			t.Errorf("%s: %+v, %d bytes of the spool in use; want the end, %d frames and 3 dropped", c.reason, s, b.spool.use, c.archived)
		}
		b.mustSave()
		next := newBench(t, b.Directory, archive)
		if s := next.sample(); s.Ended != c.reason || s.Dropped[c.reason] != 3 || !next.streamsOf("")[0].isCompleted() {
			t.Errorf("%s: the next worker has %+v; want the same end, and nothing left to ship", c.reason, s)
		}
	}
}

func TestACaptureWaitsForAFullVolume(t *testing.T) {
	archive := newFakeArchive()
	b := newBench(t, t.TempDir(), archive)
	archive.refusal = &client.Error{Status: http.StatusInsufficientStorage}
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	b.pass(tap, true, frameOf(300))
	b.drain()
	if err := b.Recorder.ship(t.Context(), b.streamsOf("")[0]); err == nil {
		t.Fatal("no error of a full volume")
	}
	archive.set(func() { archive.refusal = nil })
	b.ship()
	if got := len(read(t, archive.file(herePath))); got != 1 {
		t.Errorf("%d frames are archived, want 1", got)
	}
}

// On a volume of its own that is really full. Needs root.
func TestAFullVolumeHasRoomAgainWhenTheArchiveIsBack(t *testing.T) {
	directory, archive := t.TempDir(), newFakeArchive()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("no tmpfs can be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(directory, syscall.MNT_DETACH) })
	b := newBench(t, directory, archive, func(o *Options) { o.RingBytes = 64 << 10 })
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	b.drain()
	b.mustSave()
	b.ship()
	archive.set(func() { archive.away = true })
	for b.sample().Dropped[spoolFull] == 0 {
		b.pass(tap, true, frameOf(1000))
		b.drain()
	}
	if err := os.WriteFile(filepath.Join(directory, "filler"), make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v; want a full volume", err)
	}
	archive.set(func() { archive.away = false })
	b.ship()
	before := b.sample()
	b.pass(tap, true, frameOf(1000))
	b.drain()
	b.ship()
	if got := len(read(t, archive.file(herePath))); uint64(got) != before.Frames+1 {
		t.Errorf("%d frames are archived, want %d", got, before.Frames+1)
	}
	if again := newBench(t, directory, archive).sample(); again.Frames != before.Frames+1 {
		t.Errorf("the next worker counts %d frames; want %d", again.Frames, before.Frames+1)
	}
}

func TestNoRunTakesTheWholeSpool(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive(), func(o *Options) { o.SpoolBytes = 100 << 10 })
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	for range 200 {
		b.pass(tap, true, frameOf(1000))
		b.drain()
	}
	other := here
	other.RunUID, other.NetworkUID = "run-2", "net-2"
	tap, err := b.SetCaptures(nil, other, []v1alpha1.RadioCapture{{Name: "run"}}, EndStopped, func(*Tap) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	b.pass(tap, true, frameOf(1000))
	b.drain()
	if used := b.spool.byRun["run-1"]; used > 50<<10 {
		t.Errorf("the first run has %d bytes of %d, want at most half", used, b.spool.limit)
	}
	if s, _ := b.streamsOf("run-2")[0].sample(1, true); s.Frames != 1 || len(s.Dropped) > 0 {
		t.Errorf("the second run has %+v, want its frame", s)
	}
}

func TestCapturesChangeWhileFramesPassWithoutLosingAny(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive())
	one, two := v1alpha1.RadioCapture{Name: "run"}, v1alpha1.RadioCapture{Name: "second"}
	tap := b.change(nil, one)
	frames := 0
	for i := range 50 {
		b.pass(tap, true, frameOf(100))
		frames++
		if i%5 == 0 {
			tap = b.change(tap, one, two)
		} else if i%5 == 2 {
			tap = b.change(tap, one)
		}
		if i%3 == 0 {
			b.drain()
		}
	}
	b.drain()
	b.ship()
	if got := len(read(t, b.shelf.file(herePath))); got != frames {
		t.Errorf("the capture that stayed has %d frames of %d", got, frames)
	}
	if got := len(read(t, b.shelf.file("run-1/captures/second/lan/nor.pcapng"))); got != 20 {
		t.Errorf("the capture that came and went has %d frames, want 20", got)
	}
}

func TestABadFilterIsRefusedAndTheOtherCapturesRun(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive())
	tap, err := b.SetCaptures(nil, here, []v1alpha1.RadioCapture{{Name: "bad", Filter: "port http"}, {Name: "run"}}, EndStopped, func(*Tap) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "bad") || tap == nil || len(tap.sinks) != 1 {
		t.Errorf("tap %+v, error %v", tap, err)
	}
}

func TestStampsFollowAStepOfTheClockAndNothingLess(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive())
	tap := b.change(nil, v1alpha1.RadioCapture{Name: "run"})
	for _, step := range []int64{0, 500, 1e9} {
		b.step = step
		b.drain()
		b.pass(tap, true, frameOf(60))
		b.drain()
	}
	b.ship()
	got := read(t, b.shelf.file(herePath))
	if got[1].stamp != got[0].stamp || got[2].stamp != got[0].stamp+1e9 {
		t.Errorf("stamps %d, %d, %d: want the same, the same, and a second more", got[0].stamp, got[1].stamp, got[2].stamp)
	}
}

func TestRunEndsWhatNoTapFeedsAnyMore(t *testing.T) {
	archive, directory := newFakeArchive(), t.TempDir()
	killed := newBench(t, directory, archive)
	tap := killed.change(nil, v1alpha1.RadioCapture{Name: "run"})
	killed.pass(tap, true, frameOf(60))
	killed.drain()
	next := newBench(t, directory, archive)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- next.Run(ctx) }()
	for deadline := time.Now().Add(10 * time.Second); !next.Completed("run-1"); time.Sleep(10 * time.Millisecond) {
		next.Samples("run-1", 1)
		if time.Now().After(deadline) {
			t.Fatal("after 10 s the capture of a worker that was killed has no end")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := len(read(t, archive.file(herePath))); got != 1 {
		t.Errorf("%d frames are archived, want 1", got)
	}
}

func TestTheNextWorkerWritesWhatAKilledOneLeftInARing(t *testing.T) {
	archive, directory := newFakeArchive(), t.TempDir()
	killed := newBench(t, directory, archive, func(o *Options) { o.RingBytes = 4096 })
	tap := killed.change(nil, v1alpha1.RadioCapture{Name: "run"}, v1alpha1.RadioCapture{Name: "none", Filter: "udp port 698"})
	var want []int64
	for i := range 5 {
		killed.now += 10
		killed.pass(tap, true, frameOf(300))
		want = append(want, clockBase+killed.now)
		if i == 2 {
			killed.drain()
			tap.ring.Tail.Store(0) // as if it was killed before it freed what it had written
		}
	}
	for i := range 10 { // no room
		killed.pass(tap, true, frameOf(3000))
		if i == 3 || i == 6 {
			tap.countDropped()
			killed.mustSave()
		}
	}
	tap.countDropped() // but not saved
	next := newBench(t, directory, archive)
	next.step = 1e9 // a later step of the clock does not change their times
	next.drain()
	next.ship()
	checkArchivedOnce(t, archive, want)
	for _, s := range next.Samples("run-1", 1) {
		if s.Dropped[ringFull] != 10 {
			t.Errorf("capture %s: dropped %v, want 10 without room", s.Capture, s.Dropped)
		}
	}
	if left := ringsIn(t, directory); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// checkArchivedOnce wants the frames of some times in the archive, each once.
func checkArchivedOnce(t *testing.T, archive *fakeArchive, want []int64) {
	t.Helper()
	var got []int64
	for _, p := range read(t, archive.file(herePath)) {
		got = append(got, p.stamp)
	}
	if !slices.Equal(got, want) {
		t.Errorf("frames of %v are archived, want each of %v once", got, want)
	}
}

func TestAKillAmidADrainRepeatsNoFrame(t *testing.T) {
	archive, directory := newFakeArchive(), t.TempDir()
	killed := newBench(t, directory, archive)
	tap := killed.change(nil, v1alpha1.RadioCapture{Name: "run"}, v1alpha1.RadioCapture{Name: "last", Filter: "less 100"})
	const frames = 600
	for range frames - 1 {
		killed.pass(tap, true, frameOf(1400))
	}
	killed.pass(tap, true, frameOf(60))
	tap.sinks[1].Keep = -1 // the drain panics at the last frame
	func() {
		defer func() { _ = recover() }()
		killed.drain()
		t.Fatal("the drain ended")
	}()
	next := newBench(t, directory, archive)
	next.drain()
	next.ship()
	if got := len(read(t, archive.file(herePath))); got != frames {
		t.Errorf("%d frames are archived, want each of %d once", got, frames)
	}
	if got := len(read(t, archive.file("run-1/captures/last/lan/nor.pcapng"))); got != 1 {
		t.Errorf("%d frames pass the filter, want 1", got)
	}
}

// The shipper writes records at any time.
func TestFramesWithoutRoomAreCountedOnceWhoeverWritesTheRecord(t *testing.T) {
	directory := t.TempDir()
	killed := newBench(t, directory, newFakeArchive())
	tap := killed.change(nil, v1alpha1.RadioCapture{Name: "run"})
	tap.Miss(7)
	killed.drain()
	for _, s := range killed.streamsOf("") {
		s.mu.Lock()
		if err := s.writeRecord(); err != nil {
			t.Fatal(err)
		}
		s.mu.Unlock()
	}
	tap.Miss(2)
	for range 2 { // the second finds no ring
		next := newBench(t, directory, newFakeArchive())
		if s := next.sample(); s.Dropped[ringFull] != 9 {
			t.Errorf("dropped %v, want 9 without room", s.Dropped)
		}
		next.mustSave()
		if record := next.streamsOf("")[0].record; len(record.RingFull) > 0 {
			t.Errorf("the record keeps taps that ended: %v", record.RingFull)
		}
	}
}

func TestATapThatEndsLeavesItsLastDropsToTheNextWorker(t *testing.T) {
	for name, full := range map[string]bool{"saved": false, "not saved": true} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			killed := newBench(t, directory, newFakeArchive())
			tap := killed.change(nil, v1alpha1.RadioCapture{Name: "run"})
			killed.drain()
			killed.mustSave()
			tap.Miss(7)
			blocking := filepath.Join(directory, "run-1", "run", "lan", "nor", recordFile+wholefile.Unfinished)
			if full { // as if nothing could be written
				if err := os.Mkdir(blocking, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			killed.change(tap)
			killed.drain()
			if err := os.RemoveAll(blocking); err != nil {
				t.Fatal(err)
			}
			next := newBench(t, directory, newFakeArchive())
			if s := next.sample(); s.Dropped[ringFull] != 7 {
				t.Errorf("dropped %v, want 7 without room", s.Dropped)
			}
			if left := ringsIn(t, directory); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
		})
	}
}

func ringsIn(t *testing.T, directory string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(directory, "*"+ringSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestFramesThatComeWhileNoWorkerRunsAreCapturedOnceAndInOrder(t *testing.T) {
	archive, directory := newFakeArchive(), t.TempDir()
	first := newBench(t, directory, archive)
	tap := first.change(nil, v1alpha1.RadioCapture{Name: "run"})
	var want []int64
	pass := func(b *bench, through *Tap) {
		first.now += 10
		b.now = first.now
		b.pass(through, true, frameOf(300))
		want = append(want, clockBase+b.now)
	}
	pass(first, tap)
	first.drain()
	pass(first, tap) // the data plane goes on, but the worker has ended
	next := openBench(t, directory, archive)
	pass(first, tap) // nor has the next one set another tap
	second := next.change(nil, v1alpha1.RadioCapture{Name: "run"})
	if err := next.endLeft(); err != nil {
		t.Fatal(err)
	}
	pass(next, second)
	next.drain()
	next.ship()
	checkArchivedOnce(t, archive, want)
	if left := ringsIn(t, directory); len(left) != 1 {
		t.Errorf("%v are left, want the new one", left)
	}
}

func TestWithoutRoomForARingTheCapturesBeforeGoOn(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive())
	one, two := v1alpha1.RadioCapture{Name: "run"}, v1alpha1.RadioCapture{Name: "second"}
	tap := b.change(nil, one)
	n := b.rings[here.NetworkUID]
	if err := os.Mkdir(n.tapFile(1)+wholefile.Unfinished, 0o700); err != nil { // no tap can be written
		t.Fatal(err)
	}
	got, err := b.SetCaptures(tap, here, []v1alpha1.RadioCapture{one, two}, EndStopped, func(*Tap) error {
		t.Error("another tap is installed")
		return nil
	})
	if err == nil || got != tap {
		t.Errorf("tap %p, error %v; want %p as before and an error", got, err, tap)
	}
	b.pass(tap, true, frameOf(60))
	b.drain()
	b.ship()
	for _, s := range b.streamsOf("run-1") {
		want := map[string]runapi.CaptureSample{"run": {Frames: 1}, "second": {Ended: EndDetached}}[s.key.Name]
		if got, _ := s.sample(1, true); got.Frames != want.Frames || got.Ended != want.Ended {
			t.Errorf("%+v; want %d frames and the end %q, as who waits for the end of one that has not begun waits in vain", got, want.Frames, want.Ended)
		}
	}
}

func TestWhereATapCannotBeSetTheCapturesBeforeGoOn(t *testing.T) {
	directory := t.TempDir()
	b := newBench(t, directory, newFakeArchive())
	one, two := v1alpha1.RadioCapture{Name: "run"}, v1alpha1.RadioCapture{Name: "second"}
	refuse := func(*Tap) error { return errors.New("the engine is full") }
	set := func(before *Tap, captures ...v1alpha1.RadioCapture) {
		t.Helper()
		got, err := b.SetCaptures(before, here, captures, EndStopped, refuse)
		if got != before || err == nil || !strings.Contains(err.Error(), "nor: the engine is full") {
			t.Errorf("tap %p, error %v; want %p as before, and an error", got, err, before)
		}
		b.drain()
	}
	set(nil, one)
	if left := ringsIn(t, directory); len(left) != 0 {
		t.Errorf("rings %v; want none", left)
	}
	tap := b.change(nil, one)
	set(tap, one, two)
	set(tap)
	b.pass(tap, true, frameOf(60))
	b.drain()
	b.ship()
	for _, s := range b.streamsOf("run-1") {
		want := map[string]runapi.CaptureSample{"run": {Frames: 1}, "second": {Ended: EndStopped}}[s.key.Name]
		if got, _ := s.sample(1, true); got.Frames != want.Frames || got.Ended != want.Ended {
			t.Errorf("%+v; want %d frames and the end %q", got, want.Frames, want.Ended)
		}
	}
}

func TestARingWithoutTapsIsRemoved(t *testing.T) {
	b := newBench(t, t.TempDir(), newFakeArchive())
	sinks, err := b.sinks(here, []v1alpha1.RadioCapture{{Name: "run"}})
	if err != nil {
		t.Fatal(err)
	}
	n, err := b.ringOf(here.NetworkUID)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(n.tapFile(0)+wholefile.Unfinished, 0o700); err != nil {
		t.Fatal(err)
	}
	if tap, err := b.newTap(here.NetworkUID, sinks); err == nil {
		t.Fatalf("tap %+v though its file cannot be written", tap)
	}
	if left := ringsIn(t, b.Directory); len(left) > 0 || len(b.rings) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestWhatIsWrongInARingIsLostAndTheWorkerStarts(t *testing.T) {
	const entry, skip = (24 + 300 + 7) &^ 7, 1<<32 - 1
	for name, spoil := range map[string]func(*framering.Ring){
		"head":         func(r *framering.Ring) { r.Head.Store(1 << 40) },
		"odd position": func(r *framering.Ring) { r.Head.Store(3*entry - 1) },
		"zeros":        func(r *framering.Ring) { clear(r.Buffer[entry:]) },
		"length":       func(r *framering.Ring) { binary.LittleEndian.PutUint32(r.Buffer[entry:], 1<<30) },
		"skip":         func(r *framering.Ring) { binary.LittleEndian.PutUint32(r.Buffer[entry:], skip) },
		"tap":          func(r *framering.Ring) { binary.LittleEndian.PutUint32(r.Buffer[entry+8:], framering.MaxTaps) },
		"boot":         func(r *framering.Ring) { r.Boot[0]++ },
		"layout":       func(r *framering.Ring) { r.Layout++ },
	} {
		t.Run(name, func(t *testing.T) {
			archive, directory := newFakeArchive(), t.TempDir()
			killed := newBench(t, directory, archive)
			tap := killed.change(nil, v1alpha1.RadioCapture{Name: "run"})
			for range 3 {
				killed.pass(tap, true, frameOf(300))
			}
			spoil(tap.ring)
			var log bytes.Buffer
			next := newBench(t, directory, archive, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			next.ship()
			if got := len(read(t, archive.file(herePath))); got > 1 {
				t.Errorf("%d frames are archived, want at most the one before", got)
			}
			if !strings.Contains(log.String(), "how many is not known") {
				t.Errorf("log %q; want what is lost", log.String())
			}
			if left := ringsIn(t, directory); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
		})
	}
}

func TestACaptureThatCannotContinueKeepsNoOtherFromIt(t *testing.T) {
	archive, directory := newFakeArchive(), t.TempDir()
	killed := newBench(t, directory, archive)
	tap := killed.change(nil, v1alpha1.RadioCapture{Name: "bad"}, v1alpha1.RadioCapture{Name: "run"})
	killed.pass(tap, true, frameOf(300))
	tap.sinks[0].Filter = "port http"
	if err := killed.rings[here.NetworkUID].writeTap(tap); err != nil {
		t.Fatal(err)
	}
	next := newBench(t, directory, archive)
	next.ship()
	if got := len(read(t, archive.file(herePath))); got != 1 {
		t.Errorf("%d frames are archived, want 1", got)
	}
}

func TestARingStaysUntilTheRecordsAreWritten(t *testing.T) {
	directory := t.TempDir()
	killed := newBench(t, directory, newFakeArchive())
	killed.change(nil, v1alpha1.RadioCapture{Name: "run"}).Miss(7)
	blocking := filepath.Join(directory, "run-1", "run", "lan", "nor", recordFile+wholefile.Unfinished)
	if err := os.Mkdir(blocking, 0o700); err != nil {
		t.Fatal(err)
	}
	second := newBench(t, directory, newFakeArchive())
	second.change(nil, v1alpha1.RadioCapture{Name: "run"}).Miss(2)
	if err := os.RemoveAll(blocking); err != nil {
		t.Fatal(err)
	}
	third := newBench(t, directory, newFakeArchive())
	if s := third.sample(); s.Dropped[ringFull] != 9 {
		t.Errorf("dropped %v, want 9 without room", s.Dropped)
	}
	if left := ringsIn(t, directory); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestARingOfAnotherReleaseIsRemoved(t *testing.T) {
	directory := t.TempDir()
	folder := filepath.Join(directory, "net"+ringSuffix)
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, ringFile), []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	newBench(t, directory, newFakeArchive())
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ring stays: %v", err)
	}
}
