package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Names of the records in a run's folder.
const (
	runFile      = "run.json"
	stateFile    = "state.json"
	manifestFile = "manifest.json"
	resultsFile  = archive.ResultsDir + "/results.json"
)

// IdleApp is the app name of the agent on a node without apps.
const IdleApp = "idle"

// run is the server's state of one run. Records reach the disk before anybody learns of them.
type run struct {
	files *archive.Run
	tally *tally
	now   func() time.Time
	// onChange is called after each change of the state; it may be nil.
	onChange func()
	// lastActive is the Unix time of the run's last activity.
	lastActive atomic.Int64

	// anyRefused saves appends a look into refused.
	anyRefused atomic.Bool

	// planMu serialises changes of the plan, with their writes.
	planMu sync.Mutex
	// sealMu allows one seal at a time.
	sealMu sync.Mutex
	// eventsMu serialises additions of Kubernetes events; there are at most maxEvents.
	eventsMu  sync.Mutex
	maxEvents int
	state     saver

	mu        sync.Mutex
	record    runapi.RunRecord
	plans     map[runapi.Target]runapi.AgentPlan
	agents    map[runapi.Target]runapi.AgentState
	incidents []runapi.Incident
	refused   map[string]string
	refusedAt map[string]time.Time
	sealed    bool
	counters  *runapi.Counters
	keptUp    *bool
	// damaged are the records that could not be read.
	damaged []string
	// planChanged wakes agents, reportChanged wakes the seal.
	planChanged, reportChanged broadcast
	// eventRounds is how often, since the seal began, the operator has said that it sent every event.
	eventRounds int
	// growth wakes those who follow files.
	growth  broadcast
	digests fileDigests
}

// loadRun opens a run of the archive. If the server was killed before it wrote the plan, the plan is empty.
func loadRun(files *archive.Run, now func() time.Time) (*run, error) {
	r := &run{
		files: files, tally: newTally(), now: now, maxEvents: maxEvents,
		plans: map[runapi.Target]runapi.AgentPlan{}, agents: map[runapi.Target]runapi.AgentState{}, refused: map[string]string{}, refusedAt: map[string]time.Time{},
	}
	files.OnAppend = func(p string, piece []byte) {
		r.tally.add(p, piece)
		r.growth.notify()
	}
	if err := readRecord(r, runFile, &r.record); err != nil {
		return nil, err
	}
	var state runapi.StateRecord
	if err := readRecord(r, stateFile, &state); err != nil {
		return nil, err
	}
	if len(r.damaged) > 0 && files.ReadJSON(manifestFile, &runapi.Manifest{}) == nil {
		state.Sealed = true
	}
	for _, agent := range state.Agents {
		r.agents[runapi.Target{Node: agent.Node, App: agent.App}] = agent
	}
	maps.Copy(r.refused, state.Refused)
	maps.Copy(r.refusedAt, state.RefusedAt)
	r.anyRefused.Store(len(r.refused) > 0)
	r.incidents, r.sealed, r.counters = state.Incidents, state.Sealed, state.Counters
	r.plans = agentPlans(r.record.Plan, r.record.Revision, nil)
	r.tally.plan(r.record.Plan)
	r.readVerdict()
	r.lastActive.Store(lastWritten(files).Unix())
	if r.sealed {
		files.MarkSealed()
		r.tally.forgetLive() // the final results replace it
		if r.counters != nil {
			return r, nil
		}
	}
	if err := files.Replay(); err != nil {
		return nil, err
	}
	if r.sealed {
		r.tally.forgetPartial()
	}
	return r, nil
}

// readRecord reads one of the run's records into value. A damaged one is renamed, so that the run and the server keep working:
// the operator's next plan replaces it.
func readRecord[T any](r *run, p string, value *T) error {
	var read T
	var version struct {
		SchemaVersion int `json:"schemaVersion"`
	}
	if r.files.ReadJSON(p, &version) == nil && version.SchemaVersion > runapi.SchemaVersion {
		return runapi.CheckVersion(p, version.SchemaVersion, runapi.SchemaVersion) // a newer record is not damaged: leave it
	}
	err := r.files.ReadJSON(p, &read)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, what := wording.JSONFault(err); what != "" {
		r.damaged = append(r.damaged, fmt.Sprintf("%s, now %s: %s", p, p+archive.DamagedSuffix, what))
		return r.files.Quarantine(p)
	}
	*value = read
	return err
}

// readWhole reads a record, or says what is wrong with a damaged one. It renames none: another request may just have replaced it.
func readWhole[T any](r *run, p string, value *T) (damage string, err error) {
	var read T
	err = r.files.ReadJSON(p, &read)
	if _, what := wording.JSONFault(err); what != "" {
		return p + ": " + what, nil
	}
	*value = read
	return "", err
}

// lastWritten is the time of the newest record of the run.
func lastWritten(files *archive.Run) time.Time {
	var newest time.Time
	for _, p := range []string{runFile, stateFile} {
		f, err := files.Open(p)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		f.Close()
	}
	return newest
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (r *run) touch() { r.lastActive.Store(r.now().Unix()) }

// conflict is a change that contradicts an earlier one.
type conflict struct{ message string }

func (c conflict) Error() string { return c.message }

// putPlan stores the operator's plan. T0 and actions already sent to agents cannot change.
func (r *run) putPlan(plan runapi.Plan) error {
	r.planMu.Lock()
	defer r.planMu.Unlock()
	return r.changePlan(plan)
}

// changePlan is putPlan for callers with planMu.
func (r *run) changePlan(plan runapi.Plan) error {
	r.mu.Lock()
	old := r.record
	r.mu.Unlock()
	merged, err := mergePlan(old.Plan, plan)
	if err != nil {
		return err
	}
	if old.Revision > 0 && reflect.DeepEqual(old.Plan, merged) {
		return nil
	}
	version := runapi.SchemaVersion
	if merged.Streams == nil && old.Revision > 0 {
		version = old.SchemaVersion // an operator of that version made the plan
	}
	record := runapi.RunRecord{SchemaVersion: version, Revision: old.Revision + 1, Plan: merged}
	if err := r.updateResultsPhase(merged.Phase); err != nil { // first: the operator does not repeat a plan that is recorded
		return err
	}
	if err := r.files.ReplaceJSON(runFile, record); err != nil {
		return err
	}
	r.tally.plan(merged) // before agents know it, as only its logs count
	r.mu.Lock()
	r.record = record
	r.plans = agentPlans(merged, record.Revision, r.plans)
	r.planChanged.notify()
	r.reportChanged.notify()
	r.mu.Unlock()
	return nil
}

// finish makes every agent finish.
func (r *run) finish() error {
	// Locked from reading to writing: a plan that the operator puts meanwhile must not be lost.
	r.planMu.Lock()
	defer r.planMu.Unlock()
	r.mu.Lock()
	plan := r.record.Plan
	r.mu.Unlock()
	plan.Finish = true
	return r.changePlan(plan)
}

func mergePlan(old, plan runapi.Plan) (runapi.Plan, error) {
	switch {
	case plan.T0 == nil:
		plan.T0 = old.T0
	case old.T0 != nil && !old.T0.Equal(*plan.T0):
		return plan, conflict{fmt.Sprintf("t0 is %s, but agents know %s: it cannot change", plan.T0, old.T0)}
	case old.T0 != nil:
		plan.T0 = old.T0
	}
	if plan.Streams == nil {
		plan.Streams = old.Streams // by an operator of an earlier version, which does not know them
	}
	plan.Finish = plan.Finish || old.Finish
	if plan.ArmedVersion == 0 {
		plan.Armed, plan.ArmedVersion = old.Armed, old.ArmedVersion
	}
	return plan, checkArmed(old, plan)
}

// checkArmed refuses actions that agents could confuse: they know a list by its version and an action by its id.
func checkArmed(old, plan runapi.Plan) error {
	if plan.ArmedVersion < old.ArmedVersion || plan.ArmedVersion == old.ArmedVersion && !reflect.DeepEqual(plan.Armed, old.Armed) {
		return conflict{fmt.Sprintf("agents have version %d of the armed actions: version %d cannot replace it", old.ArmedVersion, plan.ArmedVersion)}
	}
	sent := map[string]runapi.Action{}
	for _, action := range old.Armed {
		sent[action.ID] = action
	}
	for _, action := range plan.Armed {
		if before, known := sent[action.ID]; known && !reflect.DeepEqual(before, action) {
			return conflict{fmt.Sprintf("armed action %q differs from the one that agents have: it cannot change", action.ID)}
		}
	}
	return nil
}

// afterRun reports whether agents finish in this phase.
func afterRun(phase v1alpha1.ExperimentPhase) bool {
	switch phase {
	case v1alpha1.PhaseCollecting, v1alpha1.PhaseAnalysing, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed:
		return true
	}
	return false
}

// agentPlans splits a plan into one for each agent. An unchanged plan keeps its revision, so that its agent is not woken.
func agentPlans(plan runapi.Plan, revision int64, before map[runapi.Target]runapi.AgentPlan) map[runapi.Target]runapi.AgentPlan {
	plans := map[runapi.Target]runapi.AgentPlan{}
	for _, target := range targets(plan, true) {
		plans[target] = runapi.AgentPlan{Revision: revision, T0: plan.T0, ArmedVersion: plan.ArmedVersion, Finish: plan.Finish || afterRun(plan.Phase)}
	}
	armed := slices.Clone(plan.Armed)
	slices.SortStableFunc(armed, func(a, b runapi.Action) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
	for _, action := range armed {
		for _, target := range action.Targets {
			if p, known := plans[target]; known {
				action.Targets = []runapi.Target{target}
				p.Actions = append(p.Actions, action)
				plans[target] = p
			}
		}
	}
	for target, p := range plans {
		same, known := before[target]
		if p.Revision = same.Revision; !known || !reflect.DeepEqual(same, p) {
			p.Revision = revision
		}
		plans[target] = p
	}
	return plans
}

// targets are the agents of a plan, in its order; the idle ones of nodes without apps only if idle is set.
func targets(plan runapi.Plan, idle bool) []runapi.Target {
	var all []runapi.Target
	for _, node := range plan.Nodes {
		for _, app := range node.Apps {
			all = append(all, runapi.Target{Node: node.Name, App: app.Name})
		}
		if len(node.Apps) == 0 && idle {
			all = append(all, runapi.Target{Node: node.Name, App: IdleApp})
		}
	}
	return all
}

// agentPlan returns an agent's plan, whether it exists, and a channel that closes at the next change.
func (r *run) agentPlan(target runapi.Target) (runapi.AgentPlan, bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	plan, known := r.plans[target]
	return plan, known, r.planChanged.wait()
}

// report stores an agent's report. It is written only if it differs from the last one, so a heartbeat is not.
func (r *run) report(node string, report runapi.AgentReport) error {
	r.touch()
	target := runapi.Target{Node: node, App: report.App}
	r.mu.Lock()
	before := r.agents[target].AgentReport
	before.ArchivedUntilNanoseconds, before.Clock = report.ArchivedUntilNanoseconds, report.Clock // these always change
	same := reflect.DeepEqual(before, report) && !r.state.hasFailed()
	r.agents[target] = runapi.AgentState{Node: node, AgentReport: report, ReportedAt: r.now().UTC()}
	r.reportChanged.notify()
	r.mu.Unlock()
	if same {
		return nil
	}
	return r.saveState()
}

// maxIncidents of a run.
const maxIncidents = 10000

// incident adds an incident. It replaces one with the same what, node, beginning and reason, so that an incident can end.
func (r *run) incident(incident runapi.Incident) error {
	r.mu.Lock()
	i := slices.IndexFunc(r.incidents, func(have runapi.Incident) bool {
		return have.What == incident.What && have.Node == incident.Node && have.FromSeconds == incident.FromSeconds && have.Reason == incident.Reason
	})
	same := i >= 0 && reflect.DeepEqual(r.incidents[i], incident) && !r.state.hasFailed()
	switch {
	case same:
	case i >= 0:
		r.incidents[i] = incident
	case len(r.incidents) >= maxIncidents:
		r.mu.Unlock()
		return conflict{fmt.Sprintf("the run has %d incidents already: no more are kept", maxIncidents)}
	default:
		r.incidents = append(r.incidents, incident)
	}
	r.reportChanged.notify()
	r.mu.Unlock()
	if same {
		return nil
	}
	return r.saveState()
}

const (
	// maxRefused bounds the refused logs of a run that are named; otherRefused stands for the rest.
	maxRefused   = 10000
	otherRefused = "and further ones"
)

// recordRefused notes that the archive refused a log. Each kind of reason stays with its first words, as figures in them change.
func (r *run) recordRefused(path, reason string) error {
	r.mu.Lock()
	before, known := r.refused[path]
	if !known && len(r.refused) >= maxRefused {
		path = otherRefused
		before, known = r.refused[path]
	}
	kind, _, _ := strings.Cut(reason, ":")
	same := known && strings.Contains(before, kind)
	switch {
	case !known:
		r.refused[path], r.refusedAt[path] = reason, r.now().UTC()
	case !same:
		r.refused[path] = before + "; then " + reason
	}
	r.anyRefused.Store(true)
	r.mu.Unlock()
	if same {
		return nil
	}
	return r.saveState()
}

// clearRefused notes that the archive accepts a log again. Logs grow by offset, so nothing of it is missing then.
func (r *run) clearRefused(path string) error {
	if !r.anyRefused.Load() {
		return nil
	}
	r.mu.Lock()
	_, known := r.refused[path]
	delete(r.refused, path)
	delete(r.refusedAt, path)
	r.anyRefused.Store(len(r.refused) > 0)
	r.mu.Unlock()
	if !known {
		return nil
	}
	return r.saveState()
}

// saveState writes state.json; concurrent callers share one write.
func (r *run) saveState() error {
	if r.onChange != nil {
		defer r.onChange()
	}
	return r.state.save(func() error {
		r.mu.Lock()
		record := runapi.StateRecord{
			SchemaVersion: runapi.SchemaVersion, Agents: r.agentStates(), Incidents: slices.Clone(r.incidents),
			Refused: maps.Clone(r.refused), RefusedAt: maps.Clone(r.refusedAt), Sealed: r.sealed, Counters: r.counters,
		}
		r.mu.Unlock()
		return r.files.ReplaceJSON(stateFile, record)
	})
}

// agentStates are in order of node and app; the caller has r.mu.
func (r *run) agentStates() []runapi.AgentState {
	return slices.SortedFunc(maps.Values(r.agents), func(a, b runapi.AgentState) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.App, b.App))
	})
}

// snapshot returns the state of the run.
func (r *run) snapshot() (runapi.State, error) {
	r.mu.Lock()
	state := runapi.State{Plan: r.record.Plan, Agents: r.agentStates(), Incidents: slices.Clone(r.incidents), Problem: r.problem(), Sealed: r.sealed}
	counters := r.counters
	r.mu.Unlock()
	if counters == nil {
		now := r.tally.snapshot()
		counters = &now
	}
	state.Counters = *counters
	var results runapi.Results
	damage, err := readWhole(r, resultsFile, &results)
	switch {
	case damage != "":
		state.Problem = strings.TrimPrefix(state.Problem+"; "+damage, "; ")
	case err == nil:
		state.Results = &results
	}
	return state, ignoreMissing(err)
}

// readVerdict keeps the verdict of the results, so that lists of runs read no files. Results that cannot be read have none.
func (r *run) readVerdict() {
	var keptUp *bool
	if f, err := r.files.Open(resultsFile); err == nil {
		keptUp = verdictIn(json.NewDecoder(f))
		f.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keptUp = keptUp
}

// verdictIn reads results no further than to their verdict, which is near their beginning: they may have megabytes.
func verdictIn(results *json.Decoder) *bool {
	if _, err := results.Token(); err != nil {
		return nil
	}
	for results.More() {
		name, err := results.Token()
		var value json.RawMessage
		if err != nil || results.Decode(&value) != nil {
			return nil
		}
		if name != "verdict" {
			continue
		}
		var verdict *runapi.Verdict
		if json.Unmarshal(value, &verdict) != nil || verdict == nil {
			return nil
		}
		return &verdict.KeptUp
	}
	return nil
}

// problem names the records that could not be read; empty if there are none.
func (r *run) problem() string { return strings.Join(r.damaged, "; ") }

// updateResultsPhase writes the experiment's last phase, which follows the analysis, into its results.
func (r *run) updateResultsPhase(phase v1alpha1.ExperimentPhase) error {
	if phase != v1alpha1.PhaseSucceeded && phase != v1alpha1.PhaseFailed {
		return nil
	}
	var results runapi.Results
	if damage, err := readWhole(r, resultsFile, &results); damage != "" || err != nil || results.Phase == string(phase) {
		return ignoreMissing(err)
	}
	results.Phase = string(phase)
	return r.files.ReplaceJSON(resultsFile, results)
}

// nodeOfPod returns the node whose pod has this UID.
func (r *run) nodeOfPod(podUID string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, node := range r.record.Nodes {
		if node.PodUID == podUID {
			return node.Name, true
		}
	}
	return "", false
}

// saver lets one write serve all callers whose changes precede it.
type saver struct {
	wanted atomic.Int64
	failed atomic.Bool
	mu     sync.Mutex
	saved  int64
}

// save returns after a successful write that began after the call. write must read the present state itself.
func (s *saver) save(write func() error) error {
	ticket := s.wanted.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved >= ticket {
		return nil
	}
	covers := s.wanted.Load()
	err := write()
	s.failed.Store(err != nil)
	if err != nil {
		return err
	}
	s.saved = covers
	return nil
}

// hasFailed reports whether the last write failed, so that a repeated change is not on the disk yet.
func (s *saver) hasFailed() bool { return s.failed.Load() }
