package server

import (
	"fmt"
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
)

const (
	captureSuffix = ".pcapng"
	// maxCaptureBytes of a file without a limit in the plan.
	maxCaptureBytes = 4 << 30
	// captureSlack is added to the plan's limit, for repeated section headers.
	captureSlack = 1 << 20
	// maxCaptureWait bounds how long a seal waits for captures after the last agent: nodes detach when their pods end.
	maxCaptureWait = 30 * time.Second
)

// capturePath is where a capture of a node is archived.
func capturePath(name, network, node string) string {
	return path.Join(archive.CapturesDir, name, network, node+captureSuffix)
}

// validateCaptures checks what becomes part of a path.
func validateCaptures(captures []runapi.PlannedCapture) error {
	for _, c := range captures {
		if err := archive.ValidateLabel("capture", c.Name); err != nil {
			return err
		}
		if err := archive.ValidateLabel("network of capture "+c.Name, c.Network); err != nil {
			return err
		}
		for _, node := range c.Nodes {
			if err := archive.ValidateLabel("node of capture "+c.Name, node); err != nil {
				return err
			}
		}
		if c.LimitBytes < 0 {
			return fmt.Errorf("capture %s: limitBytes is %d, want 0 or more", c.Name, c.LimitBytes)
		}
	}
	return nil
}

// captureLimit is the most bytes of a capture's file; planned is false if the plan has no such capture.
func (r *run) captureLimit(name, network, node string) (limit int64, planned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.record.Captures {
		if c.Name == name && c.Network == network && slices.Contains(c.Nodes, node) {
			planned = true
			if c.LimitBytes == 0 || c.LimitBytes > maxCaptureBytes-captureSlack {
				return maxCaptureBytes, true
			}
			limit = max(limit, c.LimitBytes+captureSlack)
		}
	}
	return limit, planned
}

// postCapture archives a piece of a capture in one step: a capture must not end within a frame.
func (s *Server) postCapture(w http.ResponseWriter, r *http.Request, who Identity) error {
	if !s.config.Policy.radiod(who) {
		return notPermitted(who, "writing captures")
	}
	run, err := s.find(r, who)
	if err != nil {
		return err
	}
	if err := archive.ValidateLabel("host", r.PathValue("host")); err != nil {
		return statusErrorf(http.StatusBadRequest, "%v", err)
	}
	name, network, node := r.PathValue("capture"), r.PathValue("network"), r.PathValue("node")
	limit, planned := run.captureLimit(name, network, node)
	if !planned {
		return statusErrorf(http.StatusForbidden, "the plan has no capture %q of node %q on network %q", name, node, network)
	}
	offset, _, err := offsetAndFollow(r)
	if err != nil {
		return err
	}
	run.touch()
	body, err := s.readVerified(r, &deadlineBody{body: http.MaxBytesReader(w, r.Body, maxCapturePiece), control: http.NewResponseController(w)})
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if int64(len(body)) > limit-offset {
		return statusErrorf(http.StatusRequestEntityTooLarge, "%d bytes at offset %d: the plan allows this capture %d bytes", len(body), offset, limit)
	}
	p := capturePath(name, network, node)
	size, err := run.files.Append(p, offset, body)
	if err != nil {
		return s.recordRefusal(run, p, err)
	}
	s.metrics.bytes.WithLabelValues("capture").Add(float64(len(body)))
	return s.writePosition(w, run, p, size)
}

// offsetAndFollow reads the query parameters offset and follow.
func offsetAndFollow(r *http.Request) (offset int64, follow bool, err error) {
	if text := r.URL.Query().Get("offset"); text != "" {
		if offset, err = strconv.ParseInt(text, 10, 64); err != nil || offset < 0 || offset > math.MaxInt64/2 {
			return 0, false, statusErrorf(http.StatusBadRequest, "offset %q: want a number of bytes, 0 or more", text)
		}
	}
	follow, err = boolIn(r, "follow")
	return offset, follow, err
}

// captureWait is how long a seal waits for captures after agents took part of its time.
func captureWait(wait, taken time.Duration) time.Duration {
	return min(max(wait-taken, min(wait, maxSampleWait)), maxCaptureWait)
}

// capturesComplete reports whether no more data of any capture is expected.
func (r *run) capturesComplete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := goneNodes(r.incidents)
	for _, c := range r.record.Captures {
		for _, node := range c.Nodes {
			sample, _ := r.tally.capture(capturePath(c.Name, c.Network, node))
			if _, lost := gone[node]; !lost && sample.Ended == "" {
				return false
			}
		}
	}
	return true
}

// captureEnded reports whether a path is that of a capture that has ended and is archived completely.
func (r *run) captureEnded(p string) bool {
	sample, known := r.tally.capture(p)
	return known && sample.Ended != ""
}

// captures finds captures that are missing or may lack their end. Dropped frames and reached limits are in the radio logs
// with their times; the analysis names them.
func (g *gapFinder) captures(sampleOf func(p string) (runapi.CaptureSample, bool)) {
	for _, c := range g.plan.Captures {
		for _, node := range c.Nodes {
			p := capturePath(c.Name, c.Network, node)
			sample, known := sampleOf(p)
			if reason := g.captureGap(p, node, sample.Ended != "", known); reason != "" {
				from := g.secondsOf(sample.TimeNanoseconds)
				g.add(runapi.Gap{What: "capture " + p, Node: node, FromSeconds: from, ToSeconds: g.end(from), Reason: reason})
			}
		}
	}
}

func (g *gapFinder) captureGap(p, node string, ended, known bool) string {
	incident, lost := g.gone[node]
	_, archived := g.logs[p]
	switch {
	case ended && archived:
		return ""
	case lost:
		return fmt.Sprintf("%s: %s; frames that radiod had not shipped are lost", incident.What, incident.Reason)
	case ended:
		return "it has ended, and nothing of it is archived: the radio log counts its dropped frames"
	case !known && !archived:
		return "no radiod shipped anything of it"
	}
	return "radiod did not report before the seal that all of it is archived"
}
