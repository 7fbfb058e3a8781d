package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

// radioLog reads what the archive has of radiod's log, as the analysis does.
type radioLog struct {
	archive *client.Client
	offset  int64
	rest    []byte // of a line that was not whole
	totals
}

// totals of all nodes.
type totals struct {
	samples  map[string]runapi.RadioSample
	captures map[string]runapi.CaptureSample
	gaps     []runapi.RadioGap
	late     uint64
}

func newRadioLog(archive *client.Client) *radioLog {
	return &radioLog{archive: archive, totals: totals{samples: map[string]runapi.RadioSample{}, captures: map[string]runapi.CaptureSample{}}}
}

// read takes in what is new and gives everything known by now.
func (l *radioLog) read() (totals, error) {
	body, err := l.archive.FileFrom(context.Background(), runUID, "radio/host.jsonl", l.offset)
	if err != nil {
		return l.totals, fmt.Errorf("radio log in the archive: %w", err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return l.totals, fmt.Errorf("radio log in the archive: %w", err)
	}
	l.offset += int64(len(content))
	content = append(l.rest, content...)
	whole := bytes.LastIndexByte(content, '\n') + 1
	l.rest = slices.Clone(content[whole:])
	lines := bufio.NewScanner(bytes.NewReader(content[:whole]))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := l.take(lines.Bytes()); err != nil {
			return l.totals, fmt.Errorf("radio log in the archive: %q: %w", lines.Text(), err)
		}
	}
	return totals{maps.Clone(l.samples), maps.Clone(l.captures), slices.Clone(l.gaps), l.late}, lines.Err()
}

func (l *radioLog) take(line []byte) error {
	var kind struct{ Host, Gap, Capture string }
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch {
	case kind.Host != "":
		return nil
	case kind.Gap != "":
		var gap runapi.RadioGap
		err := json.Unmarshal(line, &gap)
		l.gaps = append(l.gaps, gap)
		return err
	case kind.Capture != "":
		var sample runapi.CaptureSample
		err := json.Unmarshal(line, &sample)
		l.captures[sample.Node] = sample
		return err
	}
	var sample runapi.RadioSample
	err := json.Unmarshal(line, &sample)
	l.samples[sample.Node] = sample
	l.late += sample.LateReleases
	return err
}

// account is what became of the frames that the nodes sent.
type account struct {
	// sent and received by the nodes; refused by their kernels while there was no carrier.
	sent, received, refused uint64
	// carried and delivered as radiod counted them, underWay at its last sample.
	carried, delivered, underWay uint64
	drops                        map[string]uint64
	// gaps, framesLost that they name, and inRings: how many frames were sent in those gaps in which the parent was
	// killed too, up to when the interfaces had lost their carriers. The kernel throws away, without counting
	// them, those that are in the interfaces' rings.
	gaps                int
	framesLost, inRings uint64
	longest             float64 // seconds
	captured            uint64
	notCaptured         map[string]uint64
	late                uint64
}

const (
	// ringsEmptied, nanoseconds after the parent was killed, at the latest.
	ringsEmptied = 100e6
	ringDrops    = "tapRing"
	restartDrops = "radiodRestarted"
)

func accountOf(b *bed, before, after totals) account {
	a := account{sent: b.sent(), received: b.received.Load(), refused: b.refused.Load(), drops: map[string]uint64{}, notCaptured: map[string]uint64{}, late: after.late - before.late}
	for node, sample := range after.samples {
		first := before.samples[node]
		a.carried += sample.FramesSent - first.FramesSent
		a.delivered += sample.FramesReceived - first.FramesReceived
		a.underWay += uint64(sample.QueueDepth) //nolint:gosec // never negative
		for reason, frames := range sample.Drops {
			a.drops[reason] += frames - first.Drops[reason]
		}
	}
	for _, gap := range after.gaps {
		a.gaps++
		a.framesLost += gap.FramesLost
		a.longest = max(a.longest, float64(gap.ToNanoseconds-gap.FromNanoseconds)/1e9)
		for _, killed := range b.parents {
			if at := killed.UnixNano(); gap.FromNanoseconds <= at && at <= gap.ToNanoseconds {
				a.inRings += b.sentBetween(gap.FromNanoseconds, at+ringsEmptied)
			}
		}
	}
	for _, c := range after.captures {
		a.captured += c.Frames
		for reason, frames := range c.Dropped {
			a.notCaptured[reason] += frames
		}
	}
	return a
}

func (a *account) dropped() (all uint64) {
	for _, frames := range a.drops {
		all += frames
	}
	return all
}

// missing are the frames that neither arrived nor were counted.
func (a *account) missing() int64 {
	return int64(a.sent) - int64(a.received) - int64(a.dropped()) - int64(a.underWay) //nolint:gosec // far from the limit
}

func reasons(drops map[string]uint64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(drops)) {
		if drops[reason] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", reason, drops[reason]))
		}
	}
	return strings.Join(parts, ", ")
}

func (a account) printLine() {
	fmt.Printf("sent %d, received %d, dropped %d (%s), in %d gaps %d, captured %d\n", a.sent, a.received, a.dropped(), reasons(a.drops), a.gaps, a.framesLost, a.captured)
}

func (a account) print() {
	fmt.Printf("  nodes: sent %d, received %d; another %d refused by the sender's kernel for want of a carrier\n", a.sent, a.received, a.refused)
	fmt.Printf("  radiod: taken %d, delivered %d, under way %d, dropped %d: %s\n", a.carried, a.delivered, a.underWay, a.dropped(), reasons(a.drops))
	fmt.Printf("  gaps: %d, the longest %.3f s, that name %d frames as lost\n", a.gaps, a.longest, a.framesLost)
	fmt.Printf("  neither received nor counted: %d; sent in gaps in which the kernel emptied the rings of a killed parent: %d\n", a.missing(), a.inRings)
	fmt.Printf("  captured %d frames, not captured: %s\n", a.captured, reasons(a.notCaptured))
	fmt.Printf("  released more than 2 ms late: %d\n", a.late)
}

// verdict names what does not add up.
func (a account) verdict(memory error) error {
	err := memory
	if missing := a.missing(); missing < 0 || missing > int64(a.inRings) { //nolint:gosec // far from the limit
		err = errors.Join(err, fmt.Errorf("%d frames are unaccounted for; want 0, or at most the %d sent in gaps of a killed parent", missing, a.inRings))
	}
	if a.delivered != a.received {
		err = errors.Join(err, fmt.Errorf("radiod delivered %d frames, the nodes received %d", a.delivered, a.received))
	}
	if lost := a.drops[restartDrops]; lost != a.framesLost {
		err = errors.Join(err, fmt.Errorf("samples count %d frames as lost in restarts, gaps name %d", lost, a.framesLost))
	}
	if len(a.notCaptured) > 0 {
		err = errors.Join(err, fmt.Errorf("frames were not captured: %s; want all, as radiod and archive keep up with this load", reasons(a.notCaptured)))
	}
	ended, notTaken := a.delivered+a.dropped()-a.drops[ringDrops]+a.underWay, uint64(0)
	if a.inRings > 0 { // the kernel counts what it drops at a TAP that nobody has open
		notTaken = a.drops[restartDrops]
	}
	if ended < a.carried || ended > a.carried+notTaken {
		err = errors.Join(err, fmt.Errorf("radiod took %d frames and says of %d what became of them", a.carried, ended))
	}
	return err
}
