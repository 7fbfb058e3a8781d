package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
)

// archive simulates the server and all agents: it computes the agents' reports when the operator requests them.
type archive struct {
	url string
	// running reports whether a pod runs.
	running func(types.UID) bool

	mu    sync.Mutex
	runs  map[string]*run
	calls calls
	// sequence is that of the latest update; each run keeps that of its last one.
	sequence int64
}

// run is the archive's state of a run.
type run struct {
	state runapi.State
	// heard has when the agents received an action, by its id.
	heard map[string]time.Time
	// said is a summary of the agents' reports, and toldAt the sequence of its last change.
	said   [4]int
	toldAt int64
}

func newArchive() *archive { return &archive{runs: map[string]*run{}, calls: calls{}} }

func (a *archive) counted() calls {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls.copy()
}

func (a *archive) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/news", a.news)
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request, string){
		"GET /v1/runs/{uid}": a.get, "PUT /v1/runs/{uid}": a.put, "POST /v1/runs/{uid}/incidents": a.incident,
		"POST /v1/runs/{uid}/events": a.events, "POST /v1/runs/{uid}/seal": a.seal,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { handle(w, r, r.PathValue("uid")) })
	}
	return mux
}

// known returns a run and counts the request; nil, after an answer, if there is none. The lock is held.
func (a *archive) known(w http.ResponseWriter, uid, call string) *run {
	a.calls[call]++
	if a.runs[uid] == nil {
		http.Error(w, `{"error": "no such run"}`, http.StatusNotFound)
	}
	return a.runs[uid]
}

func (a *archive) get(w http.ResponseWriter, _ *http.Request, uid string) {
	a.mu.Lock()
	r := a.known(w, uid, "get state")
	a.mu.Unlock()
	if r != nil {
		a.answer(w, r)
	}
}

func (a *archive) answer(w http.ResponseWriter, r *run) {
	a.mu.Lock()
	state := r.state
	state.Agents = a.agents(r)
	a.mu.Unlock()
	_ = json.NewEncoder(w).Encode(state) // to an operator that still runs
}

// newsInterval is the interval of checks for updates of the simulated agents.
const newsInterval = 500 * time.Millisecond

// news answers once there are updates of the agents, as the server does.
func (a *archive) news(w http.ResponseWriter, request *http.Request) {
	since, _ := strconv.ParseInt(request.URL.Query().Get("since"), 10, 64) // 0 tells all
	a.mu.Lock()
	a.calls["get news"]++
	a.mu.Unlock()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(newsInterval) {
		found := a.newsSince(since)
		if len(found.Runs) > 0 || request.URL.Query().Get("epoch") != found.Epoch || time.Now().After(end) || request.Context().Err() != nil {
			_ = json.NewEncoder(w).Encode(found) // to an operator that still runs
			return
		}
	}
}

func (a *archive) newsSince(since int64) runapi.Updates {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := runapi.Updates{Epoch: "1", Runs: []string{}}
	for uid, r := range a.runs {
		var said [4]int
		for _, agent := range a.agents(r) {
			said[0]++
			said[1] += int(agent.ArmedVersion)
			said[2] += agent.ExecutedActions
			said[3] += len(agent.ArmedTooLate)
		}
		if said != r.said {
			a.sequence++
			r.said, r.toldAt = said, a.sequence
		}
		if r.toldAt > since {
			found.Runs = append(found.Runs, uid)
		}
	}
	found.Sequence = a.sequence
	return found
}

// put stores a plan. The agents receive it at once, as their polls wait for it.
func (a *archive) put(w http.ResponseWriter, request *http.Request, uid string) {
	var plan runapi.Plan
	if err := json.NewDecoder(request.Body).Decode(&plan); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.calls["put plan"]++
	r := a.runs[uid]
	if r == nil {
		r = &run{heard: map[string]time.Time{}}
		a.runs[uid] = r
	}
	r.state.Plan = plan
	for _, action := range plan.Armed {
		if r.heard[action.ID].IsZero() {
			r.heard[action.ID] = time.Now()
		}
	}
	a.mu.Unlock()
	a.answer(w, r)
}

func (a *archive) incident(w http.ResponseWriter, request *http.Request, uid string) {
	var incident runapi.Incident
	err := json.NewDecoder(request.Body).Decode(&incident)
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.known(w, uid, "post incident"); r != nil && err == nil {
		r.state.Incidents = append(r.state.Incidents, incident)
	}
}

func (a *archive) events(w http.ResponseWriter, _ *http.Request, uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known(w, uid, "post events")
}

func (a *archive) seal(w http.ResponseWriter, _ *http.Request, uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.known(w, uid, "post seal"); r != nil {
		r.state.Sealed = true
		_ = json.NewEncoder(w).Encode(runapi.Manifest{UID: uid})
	}
}

// analyse completes the last step of a run's workflow.
func (a *archive) analyse(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.runs[uid]; r != nil {
		r.state.Sealed, r.state.Results = true, &runapi.Results{Messages: runapi.Messages{Sent: 100, Expected: 100, Received: 100}, Verdict: &runapi.Verdict{KeptUp: true}}
	}
}

// agents returns the agents of running pods, which have carried out all actions up to now. The lock is held.
func (a *archive) agents(r *run) (agents []runapi.AgentState) {
	plan, now := &r.state.Plan, time.Now()
	for _, node := range plan.Nodes {
		if !a.running(types.UID(node.PodUID)) {
			continue
		}
		apps := []string{render.IdleApp}
		if len(node.Apps) > 0 {
			apps = apps[:0]
		}
		for _, app := range node.Apps {
			apps = append(apps, app.Name)
		}
		for _, app := range apps {
			report := runapi.AgentReport{App: app, Phase: runapi.AgentReady}
			r.carryOut(&report, runapi.Target{Node: node.Name, App: app}, now)
			agents = append(agents, runapi.AgentState{Node: node.Name, AgentReport: report, ReportedAt: now})
		}
	}
	return agents
}

func (r *run) carryOut(report *runapi.AgentReport, target runapi.Target, now time.Time) {
	plan := &r.state.Plan
	report.ArmedVersion = plan.ArmedVersion
	for _, action := range plan.Armed {
		if !slices.Contains(action.Targets, target) {
			continue
		}
		at := plan.T0.Add(time.Duration(action.AtNanoseconds))
		if r.heard[action.ID].After(at) {
			report.ArmedTooLate = append(report.ArmedTooLate, action.ID)
			continue
		}
		if !now.Before(at) {
			report.ExecutedActions++
			report.Phase = runapi.AgentRunning
			if action.Verb == runapi.VerbStop {
				report.Phase = runapi.AgentStopped
			}
		}
	}
}
