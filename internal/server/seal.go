package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/safetext"
)

// maxSampleWait bounds the wait for the last radio samples and events after the last agent: both are sent every second.
const maxSampleWait = 5 * time.Second

// nodeGoneIncidents are those after which a node's agents report nothing more.
var nodeGoneIncidents = map[string]bool{"NodeFailed": true, "Evicted": true}

// seal makes agents finish, waits until every log is complete or the time has passed, and writes the manifest.
// Sealing again changes nothing.
func (r *run) seal(ctx context.Context, wait time.Duration) error {
	r.sealMu.Lock()
	defer r.sealMu.Unlock()
	if r.isSealed() {
		if r.state.hasFailed() { // at the end of the seal
			return r.saveState()
		}
		return nil
	}
	if err := r.finish(); err != nil {
		return err
	}
	r.resetEventRounds()
	began := time.Now()
	if err := r.waitUntil(ctx, wait, r.agentsDone); err != nil {
		return err
	}
	if err := r.waitUntil(ctx, captureWait(wait, time.Since(began)), r.capturesComplete); err != nil {
		return err
	}
	if err := r.waitUntil(ctx, min(wait, maxSampleWait), func() bool { return r.radioComplete() && r.eventsComplete() }); err != nil {
		return err
	}
	logs, err := r.files.Seal()
	if err != nil {
		return err
	}
	manifest := runapi.Manifest{SchemaVersion: runapi.SchemaVersion, UID: r.files.Key().UID, Gaps: r.gaps(logs)}
	for _, log := range logs {
		manifest.Files = append(manifest.Files, runapi.ManifestFile{Path: log.Path, Bytes: log.Size, SHA256: log.SHA256})
	}
	if err := r.files.ReplaceJSON(manifestFile, manifest); err != nil {
		return err
	}
	r.tally.forgetPartial()
	counters := r.tally.snapshot()
	r.mu.Lock()
	r.sealed, r.counters = true, &counters
	r.mu.Unlock()
	time.AfterFunc(liveMetricsLifetime, r.tally.forgetLive)
	return r.saveState()
}

func (r *run) isSealed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sealed
}

// sealPoll is how often waitUntil checks again without a report.
const sealPoll = 200 * time.Millisecond

// waitUntil waits until done, for at most atMost; only a cancelled context is an error.
func (r *run) waitUntil(ctx context.Context, atMost time.Duration, done func() bool) error {
	timeout := time.NewTimer(atMost)
	defer timeout.Stop()
	poll := time.NewTicker(sealPoll)
	defer poll.Stop()
	for {
		r.mu.Lock()
		changed := r.reportChanged.wait()
		r.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the seal was given up: %w", ctx.Err())
		case <-timeout.C:
			return nil
		case <-changed:
		case <-poll.C:
		}
	}
}

// agentsDone reports whether nothing more is expected of any agent.
func (r *run) agentsDone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := goneNodes(r.incidents)
	for _, target := range targets(r.record.Plan, false) {
		// An agent that has given up its app still stops processes and ships logs: wait for done, not for failed.
		if _, lost := gone[target.Node]; !lost && r.agents[target].Phase != runapi.AgentDone {
			return false
		}
	}
	return true
}

func goneNodes(incidents []runapi.Incident) map[string]runapi.Incident {
	gone := map[string]runapi.Incident{}
	for _, incident := range incidents {
		if nodeGoneIncidents[incident.What] {
			gone[incident.Node] = incident
		}
	}
	return gone
}

// radioComplete reports whether every host's samples reach the end of the measurement.
func (r *run) radioComplete() bool {
	r.mu.Lock()
	end, known := measureEnd(r.record.Plan)
	r.mu.Unlock()
	newest, _ := r.tally.radio()
	for _, until := range newest {
		if known && until < end {
			return false
		}
	}
	return true
}

// measureEnd in Unix nanoseconds.
func measureEnd(plan runapi.Plan) (int64, bool) {
	if plan.T0 == nil || plan.MeasureEndNanoseconds == nil {
		return 0, false
	}
	return plan.T0.UnixNano() + *plan.MeasureEndNanoseconds, true
}

// gaps lists what the archive lacks. The analysis takes this list as it is, and names only what the contents of logs tell.
func (r *run) gaps(logs []archive.Sealed) []runapi.Gap {
	until, sampled := r.tally.radio()
	eventsSettled := r.eventsComplete()
	r.mu.Lock()
	defer r.mu.Unlock()
	g := gapFinder{plan: r.record.Plan, agents: r.agents, gone: goneNodes(r.incidents), logs: map[string]archive.Sealed{}, lastRecord: r.lastRecord}
	for _, log := range logs {
		g.logs[log.Path] = log
	}
	for _, node := range g.plan.Nodes {
		for _, app := range node.Apps {
			g.agent(node.Name, app)
		}
	}
	g.torn(logs)
	g.refused(r.refused, r.refusedAt)
	g.radio(until, sampled)
	g.captures(r.tally.capture)
	g.events(r.tally.warnings(), eventsSettled)
	return g.gaps
}

// tailBytes of a log are searched for its last complete record: lines of radio logs may be long.
const tailBytes = 1 << 20

// lastRecord is the time of the last complete record of a log in JSON Lines, Unix nanoseconds; 0 if there is none.
func (r *run) lastRecord(p string) int64 {
	f, err := r.files.Open(p)
	if err != nil {
		return 0
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	tail := make([]byte, min(info.Size(), tailBytes))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return 0
	}
	for {
		end := bytes.LastIndexByte(tail, '\n')
		if end < 0 {
			return 0
		}
		tail = tail[:end]
		var record struct {
			TimeNanoseconds int64 `json:"ts"`
		}
		line := tail[bytes.LastIndexByte(tail, '\n')+1:]
		if json.Unmarshal(line, &record) == nil && record.TimeNanoseconds > 0 {
			return record.TimeNanoseconds
		}
	}
}

// gapFinder collects what a sealed run lacks.
type gapFinder struct {
	plan   runapi.Plan
	agents map[runapi.Target]runapi.AgentState
	gone   map[string]runapi.Incident
	logs   map[string]archive.Sealed
	// lastRecord returns the time of a log's last record, Unix nanoseconds; 0 if it is not known.
	lastRecord func(p string) int64
	gaps       []runapi.Gap
}

func (g *gapFinder) add(gap runapi.Gap) {
	gap.What, gap.Reason = safetext.TruncateTo(gap.What, maxReasonCharacters), safetext.TruncateTo(gap.Reason, maxReasonCharacters)
	g.gaps = append(g.gaps, gap)
}

// secondsAfterT0 converts a time.
func (g *gapFinder) secondsAfterT0(t time.Time) *float64 {
	if g.plan.T0 == nil || t.IsZero() {
		return nil
	}
	seconds := t.Sub(*g.plan.T0).Seconds()
	return &seconds
}

// secondsOf converts Unix nanoseconds to seconds after T0; 0 means unknown.
func (g *gapFinder) secondsOf(nanoseconds int64) *float64 {
	if nanoseconds == 0 {
		return nil
	}
	return g.secondsAfterT0(time.Unix(0, nanoseconds))
}

// end of the measurement in seconds after T0; nil if it is not known, or before from.
func (g *gapFinder) end(from *float64) *float64 {
	if g.plan.MeasureEndNanoseconds == nil || from == nil {
		return nil
	}
	end := time.Duration(*g.plan.MeasureEndNanoseconds).Seconds()
	if end < *from {
		return nil
	}
	return &end
}

// podEndSeconds is how long a container may run after its pod's end as Kubernetes reports it: it reports whole seconds,
// and a deleted container has 5 s to end.
const podEndSeconds = 6.0

// shippedUntil is the time up to which the archive has everything that an app logged; 0 if it is not known.
// Records are in order of time, so each log is complete up to its last record or the agent's report, whichever is later.
func (g *gapFinder) shippedUntil(node string, app runapi.PlannedApp, state runapi.AgentState) int64 {
	until := int64(0)
	for _, file := range expectedLogs(node, app) {
		if path.Base(file) == agentLog {
			continue
		}
		if last := max(g.lastRecord(file), state.ArchivedUntilNanoseconds); until == 0 || last < until {
			until = last
		}
	}
	if until == 0 {
		return state.ArchivedUntilNanoseconds
	}
	return until
}

func (g *gapFinder) agent(node string, app runapi.PlannedApp) {
	state, reported := g.agents[runapi.Target{Node: node, App: app.Name}]
	g.agentGaps(node, app.Name, state.Gaps)
	if state.Phase != runapi.AgentDone {
		gap := runapi.Gap{What: fmt.Sprintf("logs of %s/%s", node, app.Name), Node: node, FromSeconds: g.secondsOf(g.shippedUntil(node, app, state))}
		gap.ToSeconds = g.end(gap.FromSeconds)
		if incident, lost := g.gone[node]; lost && gap.FromSeconds != nil {
			to := max(incident.FromSeconds+podEndSeconds, *gap.FromSeconds)
			gap.ToSeconds = &to
		}
		switch incident, lost := g.gone[node]; {
		case lost:
			gap.Reason = fmt.Sprintf("%s: %s; entries that the agent had not shipped are lost", incident.What, incident.Reason)
		case !reported:
			gap.Reason = "the agent never reported"
		default:
			gap.Reason = fmt.Sprintf("the agent, whose last report had phase %s, did not report before the seal that every log is shipped", state.Phase)
		}
		g.add(gap)
	}
	if !reported {
		return
	}
	for _, file := range expectedLogs(node, app) {
		if _, archived := g.logs[file]; !archived {
			g.add(runapi.Gap{What: "log " + file, Node: node, Reason: "the agent shipped no such file"})
		}
	}
}

// agentGaps adds the gaps that an agent reported.
func (g *gapFinder) agentGaps(node, app string, gaps []runapi.AgentGap) {
	for _, gap := range gaps {
		g.add(runapi.Gap{What: fmt.Sprintf("logs of %s/%s", node, app), Node: node, FromSeconds: g.secondsOf(gap.FromNanoseconds), ToSeconds: g.secondsOf(gap.ToNanoseconds), Reason: gap.Reason})
	}
}

// agentLog is the log of the agent itself.
const agentLog = "agent.jsonl"

// expectedLogs are the logs without which the results of an app are incomplete. Brokers have no message log; an image's app
// need not have one, unless its spec says that it receives.
func expectedLogs(node string, app runapi.PlannedApp) []string {
	dir := path.Join(archive.LogsDir, node, app.Name)
	files := []string{dir + "/" + agentLog}
	if app.Kind == "traffic" || app.Kind == "mgen" || app.Kind == "image" && app.Subscribes {
		files = append(files, messageLogs(node, app)...)
	}
	return files
}

// messageLogs are the paths of the message logs that an app's instances may write.
func messageLogs(node string, app runapi.PlannedApp) (files []string) {
	for i := range app.Instances {
		files = append(files, fmt.Sprintf("%s/%s/%s/messages-%d.jsonl", archive.LogsDir, node, app.Name, i+1))
	}
	return files
}

func (g *gapFinder) torn(logs []archive.Sealed) {
	for _, log := range logs {
		switch {
		case log.Torn && archive.IsCapture(log.Path):
			g.add(runapi.Gap{What: "capture " + log.Path, Node: nodeOf(log.Path), Reason: "the last frame was incomplete and was cut off"})
		case log.Torn && strings.HasSuffix(log.Path, ".jsonl"):
			from := g.secondsOf(g.lastRecord(log.Path))
			g.add(runapi.Gap{What: "log " + log.Path, Node: nodeOf(log.Path), FromSeconds: from, ToSeconds: g.end(from), Reason: "the last line is incomplete"})
		}
	}
}

// nodeOf returns the node of logs/NODE/… and captures/CAPTURE/NETWORK/NODE.pcapng, and nothing for radio samples.
func nodeOf(p string) string {
	parts := strings.Split(p, "/")
	switch {
	case parts[0] == archive.LogsDir && len(parts) > 1:
		return parts[1]
	case parts[0] == archive.CapturesDir:
		return strings.TrimSuffix(parts[len(parts)-1], captureSuffix)
	}
	return ""
}

// refused adds a gap for each log that was refused: from its last record, or from the first refusal.
func (g *gapFinder) refused(refused map[string]string, since map[string]time.Time) {
	for _, p := range slices.Sorted(maps.Keys(refused)) {
		from := g.secondsOf(g.lastRecord(p))
		if from == nil {
			from = g.secondsAfterT0(since[p])
		}
		g.add(runapi.Gap{What: "log " + p, Node: nodeOf(p), FromSeconds: from, ToSeconds: g.end(from), Reason: refused[p]})
	}
}

func (g *gapFinder) radio(until map[string]int64, sampled bool) {
	if len(g.plan.Spec.Networks) > 0 && !sampled {
		g.add(runapi.Gap{What: "radio samples", Reason: "no radiod shipped any"})
		return
	}
	end, known := measureEnd(g.plan)
	if !known {
		return
	}
	for _, p := range slices.Sorted(maps.Keys(until)) {
		if until[p] < end {
			to := time.Duration(*g.plan.MeasureEndNanoseconds).Seconds()
			g.add(runapi.Gap{What: p, FromSeconds: g.secondsAfterT0(time.Unix(0, until[p])), ToSeconds: &to,
				Reason: "radiod of this host shipped no samples up to the end of the measurement"})
		}
	}
}

// manifest lists the files of the archive: the sealed manifest, or the present files, with records and results.
func (r *run) manifest() (runapi.Manifest, error) {
	manifest := runapi.Manifest{SchemaVersion: runapi.SchemaVersion, UID: r.files.Key().UID}
	sealed := r.isSealed()
	if sealed {
		damage, err := readWhole(r, manifestFile, &manifest)
		if err != nil {
			return manifest, err
		}
		if damage != "" {
			sealed = false
			manifest.Gaps = []runapi.Gap{{What: manifestFile, Reason: damage + ": what the seal found to be missing is not known"}}
		}
	}
	files, err := r.files.Files()
	if err != nil {
		return manifest, err
	}
	for _, file := range files {
		if !sealed || !archive.IsLog(file.Path) {
			manifest.Files = append(manifest.Files, runapi.ManifestFile{Path: file.Path, Bytes: file.Size})
		}
	}
	sort.Slice(manifest.Files, func(i, j int) bool { return manifest.Files[i].Path < manifest.Files[j].Path })
	return manifest, nil
}
