package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

// runAsPublisher logs messages 1, 2, 3 … as the platform's programs do, until it is stopped.
func runAsPublisher() int {
	log, err := messagelog.Open()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	for i := 1; ; i++ {
		if err := log.Write(messagelog.Record{TimeNanoseconds: time.Now().UnixNano(), Instance: "nor/bft/1", Status: messagelog.Sent, ID: strconv.Itoa(i)}); err != nil {
			fmt.Println(err)
		}
		select {
		case <-stop:
			if err := log.Flush(); err != nil {
				fmt.Println(err)
			}
			return 0
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// smallDisk mounts a volume of 1 MiB as the node's log folder. Needs root.
func (n *node) smallDisk() {
	n.t.Helper()
	if os.Geteuid() != 0 {
		n.t.Skip("needs root, to mount a volume of 1 MiB")
	}
	if err := os.MkdirAll(n.options.LogDir, 0o750); err != nil {
		n.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", n.options.LogDir, "tmpfs", 0, "size=1m"); err != nil {
		n.t.Skip("no tmpfs can be mounted here:", err)
	}
	n.t.Cleanup(func() { _ = syscall.Unmount(n.options.LogDir, syscall.MNT_DETACH) })
}

// fill uses all free space, with a file that is no log.
func (n *node) fill() (filler string) {
	n.t.Helper()
	filler = filepath.Join(n.options.LogDir, ".filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		n.t.Fatalf("the disk does not fill: %v", err)
	}
	return filler
}

// On a full volume: each sent message is archived, or was sent within the named gap.
func TestLossesOfAFullDiskAreWithinTheNamedGap(t *testing.T) {
	t.Parallel()
	lost := filepath.Join(t.TempDir(), "lost") // is made by the first message for which the log's last page has no room
	own := `i=0; while :; do i=$((i+1)); echo "{\"ts\":$(date +%s%N),\"instance\":\"nor/bft/1\",\"status\":\"sent\",\"id\":\"$i\"}" >> "$VIGNETTE_MESSAGE_LOG" || : > ` + lost + `; sleep 0.02; done`
	for name, c := range map[string]struct {
		script string
		loses  bool
	}{
		"the platform's publisher": {"AGENT_TEST_ROLE=publisher exec " + os.Args[0], false},
		"an app of your own":       {own, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t)
			n := newNode(t, s, c.script)
			n.smallDisk()
			n.run()
			s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
			waitFor(t, "messages", func() bool { return strings.Count(s.log("messages-1.jsonl"), "\n") > 20 })
			filler := n.fill()
			waitFor(t, "the gap", func() bool { return len(s.lastReport().Gaps) == 1 })
			if c.loses {
				waitFor(t, "the first message that is lost", func() bool { _, err := os.Stat(lost); return err == nil })
			} else {
				time.Sleep(time.Second)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the end of the gap", func() bool { return s.lastReport().Gaps[0].ToNanoseconds != 0 })
			after := strings.Count(s.log("messages-1.jsonl"), "\n")
			waitFor(t, "messages after it", func() bool { return strings.Count(s.log("messages-1.jsonl"), "\n") > after+20 })
			s.finish()
			n.waitExit()
			missing := wantSequence(t, s.log("messages-1.jsonl"), s.lastReport().Gaps[0])
			if missing > 0 != c.loses {
				t.Errorf("%d messages are missing", missing)
			}
		})
	}
}

func TestMessagesThatWaitedForAFullDiskNeedNoLaterOnes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newFakeServer(t)
	n := newNode(t, s, fmt.Sprintf(`ts=$(date +%%s%%N); say() { for i in $(seq $1 $2); do echo "{\"ts\":$ts,\"status\":\"sent\",\"id\":\"$i\"}"; done; }
say 1 1; until [ -e %[1]s/full ]; do sleep 0.02; done; say 2 200; touch %[1]s/said; exec sleep 60`, dir))
	n.config.MessagesOnStdout = true
	n.smallDisk()
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "the first message", func() bool { return s.log("messages-1.jsonl") != "" })
	filler := n.fill()
	if err := os.WriteFile(filepath.Join(dir, "full"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the last message", func() bool { _, err := os.Stat(filepath.Join(dir, "said")); return err == nil })
	time.Sleep(200 * time.Millisecond) // until the agent has read it
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * checkPeriod)
	s.finish()
	n.waitExit()
	if got := strings.Count(s.log("messages-1.jsonl"), "\n"); got != 200 {
		t.Errorf("%d messages are archived; want all 200, of which most waited", got)
	}
}

// wantSequence wants every id from 1 on in the log, or a hole within the gap, and counts the missing ids.
func wantSequence(t *testing.T, log string, gap runapi.AgentGap) (missing int) {
	t.Helper()
	before := messagelog.Record{ID: "0"}
	_, err := messagelog.Read(strings.NewReader(log), func(r messagelog.Record) {
		last, _ := strconv.Atoi(before.ID)
		id, _ := strconv.Atoi(r.ID)
		if id != last+1 {
			missing += id - last - 1
			if before.TimeNanoseconds > gap.ToNanoseconds || r.TimeNanoseconds < gap.FromNanoseconds || id <= last {
				t.Errorf("message %d follows %d at %d: want what is missing in the gap %+v", id, last, r.TimeNanoseconds, gap)
			}
		}
		before = r
	})
	if err != nil || before.ID == "0" {
		t.Errorf("the log has no messages: %v", err)
	}
	return missing
}

func TestTheAgentsOwnLogIsCompleteAfterAFullDisk(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `exec sleep 60`)
	n.smallDisk()
	n.run()
	n.waitPhase(runapi.AgentReady)
	filler := n.fill()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	n.waitPhase(runapi.AgentRunning)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "what was told meanwhile", func() bool { return len(s.event(t, eventStarted)) == 1 })
	s.finish()
	n.waitExit()
}

func TestDamagedPartsAreSentAgain(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	writeLog(t, dir, "one\ntwo\n")
	s.set(func(s *fakeServer) { s.damage = true })
	if _, err := shipper.shipRound(t.Context(), bytesPerRound, false); err == nil {
		t.Error("a damaged part passes for archived")
	}
	s.set(func(s *fakeServer) { s.damage = false })
	if err := shipper.shipAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.log("x.log") != "one\ntwo\n" || s.damaged == 0 {
		t.Errorf("archived %q after %d damaged parts; want it whole after one", s.log("x.log"), s.damaged)
	}
}

func TestAnArchiveThatDoesNotAnswerSlowsNoApp(t *testing.T) {
	t.Parallel()
	const megabytes = 20
	s := newFakeServer(t)
	done := filepath.Join(t.TempDir(), "done")
	n := newNode(t, s, fmt.Sprintf(`head -c %d000000 /dev/zero | tr '\0' x; for i in $(seq 1000); do echo "message $i"; done >> "$VIGNETTE_MESSAGE_LOG"; touch %q`, megabytes, done))
	n.run()
	n.waitPhase(runapi.AgentReady)
	s.set(func(s *fakeServer) { s.hang = true })
	due := s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "the app's end", func() bool { _, err := os.Stat(done); return err == nil })
	if took := time.Since(due); took > 15*time.Second {
		t.Errorf("the app took %v for %d MB of output; want it not to wait for the archive", took, megabytes)
	}
	if at := s.lastReport().ArchivedUntilNanoseconds; at > due.UnixNano() {
		t.Errorf("the agent says that the archive had everything at %d, after the start at %d", at, due.UnixNano())
	}
	s.set(func(s *fakeServer) { s.hang = false })
	s.CloseClientConnections() // otherwise the hanging request would take its 30 s
	s.finish()
	n.waitExit()
	if got := len(s.log("stdout-1.log")); got != megabytes*1000*1000 {
		t.Errorf("archived %d bytes of output; want all %d MB", got, megabytes)
	}
	if got := strings.Count(s.log("messages-1.jsonl"), "\n"); got != 1000 {
		t.Errorf("archived %d messages; want all 1000", got)
	}
}

func TestTheReportSaysUntilWhenTheArchiveIsComplete(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	now, until := int64(0), int64(0)
	shipper.now, shipper.onArchivedUntil = func() int64 { return now }, func(ns int64) { until = ns }
	writeLog(t, dir, strings.Repeat("a line\n", 1000))
	for _, step := range []struct {
		at, budget, want int64
		refuse           bool
	}{{10, 1000, 0, false}, {20, 1 << 20, 0, true}, {30, 1 << 20, 30, false}, {40, 1 << 20, 40, false}} {
		s.set(func(s *fakeServer) { s.refuse = step.refuse })
		now = step.at
		if _, err := shipper.shipRound(t.Context(), step.budget, false); (err != nil) != step.refuse {
			t.Fatal(err)
		}
		if until != step.want {
			t.Errorf("at %d: whole until %d; want %d", step.at, until, step.want)
		}
	}
}

// needHoles skips a test if the file system of a folder makes no holes in files.
func needHoles(t *testing.T, dir string) {
	t.Helper()
	f, err := os.CreateTemp(dir, ".hole")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, diskBlock); err != nil {
		t.Skipf("this file system makes no holes: %v", err)
	}
}

func TestArchivedBytesAreReleasedFromTheDisk(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	needHoles(t, dir)
	name := "stdout-1.log"
	line := strings.Repeat("x", 1023) + "\n"
	var whole strings.Builder
	grow := func(lines int) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		text := strings.Repeat(line, lines)
		whole.WriteString(text)
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if _, err := shipper.shipRound(t.Context(), 1<<30, false); err != nil {
			t.Fatal(err)
		}
	}
	wait := func() {
		for i := range shipper.confirmed[name] {
			shipper.confirmed[name][i].at = shipper.confirmed[name][i].at.Add(-2 * punchAfter)
		}
	}
	grow(4096)
	wait()
	grow(1)
	if got := spoolBytes(dir); got < 4<<20 {
		t.Fatalf("%d bytes are on the disk; want all that the archive confirmed a moment ago", got)
	}
	wait()
	grow(1)
	if got := spoolBytes(dir); got > 2<<20 {
		t.Fatalf("%d bytes are on the disk; want what the archive has for long released", got)
	}
	if left := shipper.budget.bytesLeft.Load(); left < 2<<20 {
		t.Errorf("the budget of output got back %d bytes; want what was released", left)
	}
	wait()
	grow(2048)
	wait()
	grow(1)
	if s.log(name) != whole.String() {
		t.Error("the archive has other bytes than the app wrote")
	}
	// An archive that has lost confirmed bytes: zeros in the hole must not pass for the log.
	s.set(func(s *fakeServer) { s.logs[name] = s.logs[name][:1000] })
	grow(1)
	if !shipper.refusedFiles[name] || strings.ContainsRune(s.log(name), 0) {
		t.Errorf("archived %d bytes, given up: %v; want no byte of the hole, and the log given up", len(s.log(name)), shipper.refusedFiles[name])
	}
}

func TestALogThatTheAppMakesShorterIsReportedOnce(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newReportingShipper(t, s)
	for _, lines := range []int{10, 2, 3, 12, 4, 4} {
		writeLog(t, dir, strings.Repeat("a line\n", lines))
		if _, err := shipper.shipRound(t.Context(), 1<<20, false); err != nil {
			t.Fatal(err)
		}
	}
	told := s.event(t, eventNotArchived)
	if len(told) != 2 || !strings.Contains(told[0].Message, "was made shorter by the app, from 70 to 14 bytes") || !strings.Contains(told[1].Message, "from 84 to 28 bytes") {
		t.Errorf("told %+v; want that it became shorter, once each time", told)
	}
}

func TestALogThatTheAppReplacesIsReportedOnce(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newReportingShipper(t, s)
	ship := func() {
		t.Helper()
		if _, err := shipper.shipRound(t.Context(), 1<<20, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"old one\n", "old one\nold two\n"} {
		writeLog(t, dir, text)
		ship()
	}
	for _, text := range []string{"new one\nnew two\n", "newer 1\nnewer 2\n"} {
		another := filepath.Join(dir, ".another")
		if err := errors.Join(os.WriteFile(another, []byte(text), 0o600), os.Rename(another, filepath.Join(dir, "x.log"))); err != nil {
			t.Fatal(err)
		}
		ship()
	}
	if told := s.event(t, eventNotArchived); len(told) != 1 || !strings.Contains(told[0].Message, "x.log was replaced by the app with another file: its first 16 bytes are not archived") {
		t.Errorf("told %+v; want once that it was replaced", told)
	}
}

func TestALogThatBecomesShorterWhereItWasResumedIsReported(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newReportingShipper(t, s)
	s.set(func(s *fakeServer) { s.logs["x.log"] = []byte(strings.Repeat("a line\n", 10)) }) // by an agent before this one
	for _, lines := range []int{10, 10, 2, 2} {
		writeLog(t, dir, strings.Repeat("a line\n", lines))
		_, _ = shipper.shipRound(t.Context(), 1<<20, false)
	}
	if told := s.event(t, eventNotArchived); len(told) != 1 || !strings.Contains(told[0].Message, "from 70 to 14 bytes") {
		t.Errorf("told %+v; want that it became shorter", told)
	}
}

func TestWhatTheArchiveHasLostIsShippedAgainBeforeItIsReleased(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	needHoles(t, dir)
	whole := strings.Repeat(strings.Repeat("x", 1023)+"\n", 4096)
	ship := func(log string) {
		t.Helper()
		writeLog(t, dir, log)
		if _, err := shipper.shipRound(t.Context(), 1<<30, false); err != nil {
			t.Fatal(err)
		}
	}
	ship(whole)
	shipper.confirmed["x.log"] = []confirmedSize{{shipper.positions["x.log"], time.Now().Add(-2 * punchAfter)}}
	s.set(func(s *fakeServer) { s.logs["x.log"] = s.logs["x.log"][:1<<20] })
	whole += "last\n"
	ship(whole) // finds out
	if _, err := shipper.shipRound(t.Context(), 1<<30, false); err != nil {
		t.Fatal(err)
	}
	if s.log("x.log") != whole {
		t.Errorf("the archive has %d bytes; want the %d that the app wrote", len(s.log("x.log")), len(whole))
	}
}

// acceptingServer archives all that it gets.
type acceptingServer struct{ server }

func (acceptingServer) AppendLogs(_ context.Context, _ string, parts []client.LogPart) (answers []client.LogResult, err error) {
	for _, part := range parts {
		answers = append(answers, client.LogResult{Size: part.Offset + int64(len(part.Content))})
	}
	return answers, nil
}

// What is shipped at full rate must not fill the spool, or the kubelet would evict the pod. All sizes are a 16th of the real ones, to spare the disk.
func TestALogThatGrowsAsFastAsItIsShippedNeedsNoMoreThanTheSpool(t *testing.T) {
	t.Parallel()
	const scale, spool = 16, 240 << 20
	dir := t.TempDir()
	needHoles(t, dir)
	f, err := os.Create(filepath.Join(dir, "messages-1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	second := []byte(strings.Repeat(strings.Repeat("x", 1023)+"\n", bytesPerRound/scale/1024))
	synctest.Test(t, func(t *testing.T) {
		shipper := newShipper(dir, "bft", acceptingServer{}, nil)
		most := int64(0)
		for range 240 {
			time.Sleep(checkPeriod)
			if _, err := f.Write(second); err != nil {
				t.Fatal(err)
			}
			if _, err := shipper.shipRound(t.Context(), bytesPerRound, false); err != nil {
				t.Fatal(err)
			}
			most = max(most, spoolBytes(dir))
		}
		if most > spool/scale {
			t.Errorf("%d bytes were on the disk; want %d at most", most, spool/scale)
		}
	})
}

func TestAShortageOfDiskIsAGapFromTheLastTimeThereWasRoom(t *testing.T) {
	t.Parallel()
	free := int64(math.MaxInt64)
	w := diskWatch{state: newState("bft"), free: func() int64 { return free }, lastRoom: 1}
	for i, at := range []int64{math.MaxInt64, scarceBytes, scarceBytes - 1, 0, 0, 1 << 20, 0} {
		free = at
		w.check(int64(i + 10))
	}
	var got []string
	for _, gap := range w.state.snapshot().Gaps {
		got = append(got, fmt.Sprintf("%d to %d", gap.FromNanoseconds, gap.ToNanoseconds))
	}
	if diff := cmp.Diff([]string{"11 to 15", "15 to 0"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestGapsBeyondTheLimitAreInTheLastOne(t *testing.T) {
	t.Parallel()
	s := newState("bft")
	for i := range int64(3 * runapi.MaxAgentGaps) {
		s.gapBegins(2*i+1, "full")
		s.gapEnds(2*i + 2)
	}
	gaps := s.snapshot().Gaps
	last := gaps[len(gaps)-1]
	if len(gaps) != runapi.MaxAgentGaps || last.ToNanoseconds != 6*runapi.MaxAgentGaps || last.FromNanoseconds != 2*runapi.MaxAgentGaps-1 {
		t.Errorf("%d gaps, the last one %+v; want %d, and the last one to the end of all", len(gaps), last, runapi.MaxAgentGaps)
	}
}
