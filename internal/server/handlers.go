package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/safetext"
	"vignette.dev/vignette/internal/wording"
)

func statusErrorf(status int, format string, args ...any) error {
	return statusError{status, runapi.Problem{Error: fmt.Sprintf(format, args...)}}
}

// notPermitted is the error for a caller who may not do this.
func notPermitted(who Identity, what string) error {
	if who.Anonymous() {
		return statusErrorf(http.StatusUnauthorized, "%s needs a token", what)
	}
	return statusErrorf(http.StatusForbidden, "%s is not for %s", what, who.Username)
}

// find returns the run that a request names, within the request's scope. Runs of other namespaces are as good as absent.
func (s *Server) find(r *http.Request, who Identity) (*run, error) {
	uid := r.PathValue("uid")
	found := s.runs.get(uid)
	switch {
	case who.Scope != "" && (found == nil || found.files.Key().Namespace != who.Scope):
		return nil, statusErrorf(http.StatusNotFound, "no run of namespace %s has uid %q", who.Scope, uid)
	case found == nil:
		return nil, statusErrorf(http.StatusNotFound, "no run has uid %q", uid)
	}
	return found, nil
}

// findFor returns the run that a request names, if the permission allows it in the run's namespace. Without a token, a caller
// cannot learn which runs exist.
func (s *Server) findFor(r *http.Request, who Identity, what string, may permission) (*run, error) {
	found, err := s.find(r, who)
	if err != nil {
		if who.Anonymous() {
			return nil, notPermitted(who, what)
		}
		return nil, err
	}
	return found, requirePermission(r.Context(), who, found.files.Key().Namespace, what, may)
}

func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, limit int64, value any) error {
	body := &deadlineBody{body: http.MaxBytesReader(w, r.Body, limit), control: http.NewResponseController(w)}
	text, err := s.readVerified(r, body)
	// The body's deadline must not end the handler's later waits.
	_ = body.control.SetReadDeadline(time.Time{})
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := json.Unmarshal(text, value); err != nil {
		_, what := wording.JSONFault(err)
		return statusErrorf(http.StatusBadRequest, "the request is not the expected JSON: %s", cmp.Or(what, err.Error())) // own types say what they want
	}
	return nil
}

// listRuns lists the runs of one namespace, or all that the caller may read.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request, who Identity) error {
	namespace, name := r.URL.Query().Get("namespace"), r.URL.Query().Get("name")
	if who.Scope != "" {
		if namespace != "" && namespace != who.Scope {
			return statusErrorf(http.StatusForbidden, "these are the runs of namespace %s: namespace %q has an archive of its own", who.Scope, namespace)
		}
		namespace = who.Scope
	}
	if namespace != "" || who.Anonymous() {
		if err := requirePermission(r.Context(), who, namespace, "reading runs of namespace "+strconv.Quote(namespace), s.mayRead); err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, s.runs.list(namespace, name))
	}
	runs := s.runs.list("", name)
	namespaces := map[string]bool{}
	for _, run := range runs {
		namespaces[run.Namespace] = true
	}
	readable, err := s.readableNamespaces(r.Context(), who, namespaces)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, slices.DeleteFunc(runs, func(run runapi.RunSummary) bool { return !readable[run.Namespace] }))
}

func (s *Server) putPlan(w http.ResponseWriter, r *http.Request, who Identity) error {
	if !s.config.Policy.operator(who) {
		return notPermitted(who, "writing a plan")
	}
	var plan runapi.Plan
	if err := s.readJSON(w, r, maxPlanBytes, &plan); err != nil {
		return err
	}
	if err := validatePlan(plan, r.PathValue("uid")); err != nil {
		return statusErrorf(http.StatusBadRequest, "%v", err)
	}
	if s.runs.get(plan.UID) == nil {
		if err := s.store.CheckTeam(plan.Namespace); err != nil {
			return err
		}
	}
	run, err := s.runs.ensure(keyOf(plan))
	if err != nil {
		return err
	}
	run.touch()
	if err := run.putPlan(plan); err != nil {
		return err
	}
	s.runs.indexPods(run)
	return s.writeState(w, run)
}

// validatePlan checks what becomes part of a path, and that agents can execute the actions.
func validatePlan(plan runapi.Plan, uid string) error {
	if plan.UID != uid {
		return fmt.Errorf("the plan's uid is %q, want the path's %q", plan.UID, uid)
	}
	if err := keyOf(plan).Validate(); err != nil {
		return err
	}
	nodes := map[string]bool{}
	for _, node := range plan.Nodes {
		if err := archive.ValidateLabel("node", node.Name); err != nil {
			return err
		}
		if nodes[node.Name] {
			return fmt.Errorf("there are two nodes %q", node.Name)
		}
		nodes[node.Name] = true
		for _, app := range node.Apps {
			if err := archive.ValidateLabel("app of node "+node.Name, app.Name); err != nil {
				return err
			}
		}
	}
	if err := validateCaptures(plan.Captures); err != nil {
		return err
	}
	ids := map[string]bool{}
	for _, action := range plan.Armed {
		if action.ID == "" || ids[action.ID] {
			return fmt.Errorf("armed action id %q is empty or not unique", action.ID)
		}
		ids[action.ID] = true
		if action.Verb != runapi.VerbStart && action.Verb != runapi.VerbStop {
			return fmt.Errorf("armed action %q: verb is %q, want start or stop", action.ID, action.Verb)
		}
	}
	return nil
}

func (s *Server) getState(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, err := s.findFor(r, who, "reading this run", s.mayRead)
	if err != nil {
		return err
	}
	live, err := boolIn(r, "live")
	if err != nil {
		return err
	}
	state, err := run.snapshot()
	if err != nil {
		return err
	}
	if live {
		state.Live = run.tally.liveState()
	}
	return writeJSON(w, http.StatusOK, state)
}

func (s *Server) writeState(w http.ResponseWriter, run *run) error {
	state, err := run.snapshot()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, state)
}

func (s *Server) deleteRun(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, err := s.findFor(r, who, "deleting this run", s.mayDelete)
	if err != nil {
		return err
	}
	// The operator deletes the record of a start that it takes back. Others would make the experiment fail.
	if _, ended := s.runs.retainedSince(run); !ended && !s.config.Policy.administrator(who) {
		return statusErrorf(http.StatusConflict, "run %s goes on: stop experiment %s first, or delete it", run.files.Key().UID, run.files.Key().Name)
	}
	if err := s.runs.remove(run); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) postIncident(w http.ResponseWriter, r *http.Request, who Identity) error {
	if !s.config.Policy.operator(who) {
		return notPermitted(who, "writing incidents")
	}
	run, err := s.find(r, who)
	if err != nil {
		return err
	}
	var incident runapi.Incident
	if err := s.readJSON(w, r, maxReportBytes, &incident); err != nil {
		return err
	}
	if incident.What == "" || incident.Reason == "" {
		return statusErrorf(http.StatusBadRequest, "an incident needs what (%q) and reason (%q)", incident.What, incident.Reason)
	}
	run.touch()
	incident.What, incident.Reason = safetext.Truncate(incident.What), safetext.TruncateTo(incident.Reason, maxReasonCharacters)
	if err := run.incident(incident); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxSealWait is the longest wait that a seal request may ask for.
const maxSealWait = time.Hour

func (s *Server) postSeal(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, err := s.findFor(r, who, "sealing this run", byPolicy(func(who Identity, namespace string) bool {
		return s.config.Policy.operator(who) || s.config.Policy.workflow(who, namespace)
	}))
	if err != nil {
		return err
	}
	var request runapi.SealRequest
	if err := s.readJSON(w, r, maxReportBytes, &request); err != nil {
		return err
	}
	if !(request.WaitSeconds >= 0 && request.WaitSeconds <= maxSealWait.Seconds()) {
		return statusErrorf(http.StatusBadRequest, "waitSeconds is %v: want 0 to %v", request.WaitSeconds, maxSealWait.Seconds())
	}
	run.touch()
	if err := run.seal(r.Context(), time.Duration(request.WaitSeconds*float64(time.Second))); err != nil {
		return err
	}
	s.movements.tidy()
	manifest, err := run.manifest()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, manifest)
}

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, err := s.findFor(r, who, "reading this run", s.mayRead)
	if err != nil {
		return err
	}
	digests, err := boolIn(r, "digests")
	if err != nil {
		return err
	}
	manifest, err := run.manifest()
	if err != nil {
		return err
	}
	if digests {
		if err := run.addDigests(&manifest); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, manifest)
}

// boolIn reads a query parameter that is true or false, and false without it.
func boolIn(r *http.Request, name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, statusErrorf(http.StatusBadRequest, "%s %q: want true or false", name, text)
	}
	return value, nil
}

func (s *Server) getFile(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, err := s.findFor(r, who, "reading this run", s.mayRead)
	if err != nil {
		return err
	}
	p := r.PathValue("path")
	if err := archive.ValidatePath(p); err != nil {
		return statusErrorf(http.StatusBadRequest, "%v", err)
	}
	offset, follow, err := offsetAndFollow(r)
	if err != nil {
		return err
	}
	if follow {
		return s.follow(w, r, who, run, p, offset)
	}
	f, err := run.files.Open(p)
	info, err := statOpened(f, err, "run %s has no file %s", run.files.Key().UID, p)
	if err != nil {
		return err
	}
	defer f.Close()
	if offset > info.Size() {
		return statusErrorf(http.StatusRequestedRangeNotSatisfiable, "offset %d: %s has %d bytes", offset, p, info.Size())
	}
	// The size is fixed now: a log that grows meanwhile ends where its header says.
	serveFile(w, r, p, info, info.ModTime(), io.NewSectionReader(f, offset, info.Size()-offset))
	return nil
}

// statOpened returns a file's information, or an error that says what is missing. On an error it closes the file.
func statOpened(f *os.File, err error, missing string, arguments ...any) (fs.FileInfo, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, statusErrorf(http.StatusNotFound, missing, arguments...)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return info, nil
}

// serveFile sends the content of a file; modified is zero if its time means nothing.
func serveFile(w http.ResponseWriter, r *http.Request, p string, info fs.FileInfo, modified time.Time, content io.ReadSeeker) {
	setFileHeader(w.Header(), p)
	serveContent(w, r, info, modified, content)
}

// serveContent is serveFile without its header.
func serveContent(w http.ResponseWriter, r *http.Request, info fs.FileInfo, modified time.Time, content io.ReadSeeker) {
	limitSending(w, info.Size())
	http.ServeContent(w, r, "", modified, content)
}

// setFileHeader marks a file as data, whatever a tenant wrote into it: a browser must neither guess its type nor run it.
func setFileHeader(header http.Header, p string) {
	header.Set("Content-Type", contentType(p))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox")
}

func contentType(p string) string {
	switch path.Ext(p) {
	case ".json":
		return "application/json"
	case ".jsonl":
		return "application/x-ndjson"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".txt", ".log":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

func (s *Server) putResult(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, err := s.findFor(r, who, "writing results of this run", byPolicy(s.config.Policy.workflow))
	if err != nil {
		return err
	}
	p := archive.ResultsDir + "/" + r.PathValue("path")
	if err := archive.ValidatePath(p); err != nil {
		return statusErrorf(http.StatusBadRequest, "%v", err)
	}
	run.touch()
	size, err := s.replaceResult(w, r, run, p)
	s.metrics.bytes.WithLabelValues("result").Add(float64(size))
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// replaceResult stores one result. results.json is always taken, as it says what is missing.
func (s *Server) replaceResult(w http.ResponseWriter, r *http.Request, run *run, p string) (int64, error) {
	if p == resultsFile {
		// Every State carries these results, so their form is checked.
		var results runapi.Results
		if err := s.readJSON(w, r, maxPlanBytes, &results); err != nil {
			return 0, err
		}
		body, err := encodeResults(results)
		if err != nil {
			return 0, err
		}
		size, err := run.files.Replace(p, body)
		run.readVerdict()
		return size, err
	}
	body, err := s.verifyingReader(r, &deadlineBody{body: http.MaxBytesReader(w, r.Body, maxResultBytes), control: http.NewResponseController(w)})
	if err != nil {
		return 0, err
	}
	size, err := run.files.ReplaceResult(p, body)
	if err != nil && slices.Contains([]int{http.StatusInsufficientStorage, http.StatusRequestEntityTooLarge}, classify(err).status) {
		// One of an earlier analysis would stand beside results that are not its own.
		err = errors.Join(err, run.files.RemoveResult(p))
	}
	return size, err
}

func encodeResults(results runapi.Results) (io.Reader, error) {
	text, err := json.MarshalIndent(results, "", " ")
	return bytes.NewReader(append(text, '\n')), err
}

// deadlineBody gives each piece of a body its own time limit: a slow client may take long, a stalled one may not.
type deadlineBody struct {
	body    io.Reader
	control *http.ResponseController
}

func (b *deadlineBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(pieceTimeout))
	return b.body.Read(p)
}

// agentOf returns the run and node of the agent that sent the request.
func (s *Server) agentOf(who Identity) (*run, string, error) {
	if who.Anonymous() {
		return nil, "", notPermitted(who, "a request of an agent")
	}
	run, node := s.runs.agent(who)
	if run == nil {
		return nil, "", statusErrorf(http.StatusForbidden, "pod %q of %s is not a node of any run", who.PodUID, who.Username)
	}
	return run, node, nil
}

func (s *Server) getAgentPlan(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, node, err := s.agentOf(who)
	if err != nil {
		return err
	}
	revision, err := strconv.ParseInt(r.URL.Query().Get("revision"), 10, 64)
	if err != nil {
		return statusErrorf(http.StatusBadRequest, "revision %q: want the revision of the newest known plan, 0 for none", r.URL.Query().Get("revision"))
	}
	target := runapi.Target{Node: node, App: r.URL.Query().Get("app")}
	deadline := time.NewTimer(s.config.LongPoll)
	defer deadline.Stop()
	for {
		plan, known, changed := run.agentPlan(target)
		if !known {
			return statusErrorf(http.StatusForbidden, "node %s of this run has no app %q", node, target.App)
		}
		if plan.Revision != revision {
			return writeJSON(w, http.StatusOK, plan)
		}
		select {
		case <-changed:
		case <-deadline.C:
			return writeJSON(w, http.StatusOK, plan)
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

func (s *Server) postReport(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, node, err := s.agentOf(who)
	if err != nil {
		return err
	}
	var report runapi.AgentReport
	if err := s.readJSON(w, r, maxReportBytes, &report); err != nil {
		return err
	}
	switch report.Phase {
	case runapi.AgentReady, runapi.AgentRunning, runapi.AgentStopped, runapi.AgentDone, runapi.AgentFailed:
	default:
		return statusErrorf(http.StatusBadRequest, "phase is %q: want ready, running, stopped, done or failed", report.Phase)
	}
	if _, known, _ := run.agentPlan(runapi.Target{Node: node, App: report.App}); !known {
		return statusErrorf(http.StatusForbidden, "node %s of this run has no app %q", node, report.App)
	}
	boundReport(&report)
	if err := run.report(node, report); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxReasonCharacters of a reason: it may hold the last lines of an app.
const maxReasonCharacters = 2000

// boundReport cuts an agent's texts: anything may run in its node.
func boundReport(report *runapi.AgentReport) {
	report.Message, report.Reason = safetext.TruncateTo(report.Message, maxReasonCharacters), safetext.Truncate(report.Reason)
	report.ArmedTooLate = report.ArmedTooLate[:min(len(report.ArmedTooLate), 1)]
	for i, id := range report.ArmedTooLate {
		report.ArmedTooLate[i] = safetext.Truncate(id)
	}
	report.Gaps = report.Gaps[:min(len(report.Gaps), runapi.MaxAgentGaps)]
	for i := range report.Gaps {
		report.Gaps[i].Reason = safetext.TruncateTo(report.Gaps[i].Reason, maxReasonCharacters)
	}
}

// getClock gives the time to a node that has a clock of its own. The two readings include the time of authentication.
func (s *Server) getClock(w http.ResponseWriter, _ *http.Request, who Identity) error {
	if _, _, err := s.agentOf(who); err != nil {
		return err
	}
	now := s.config.Now()
	received := now
	if r, ok := w.(*responseRecorder); ok {
		received = r.received
	}
	return writeJSON(w, http.StatusOK, runapi.ClockReading{ReceivedNanoseconds: received.UnixNano(), SentNanoseconds: now.UnixNano()})
}

func (s *Server) postRadio(w http.ResponseWriter, r *http.Request, who Identity) error {
	if !s.config.Policy.radiod(who) {
		return notPermitted(who, "writing radio samples")
	}
	run, err := s.find(r, who)
	if err != nil {
		return err
	}
	host := r.PathValue("host")
	if err := archive.ValidateLabel("host", host); err != nil {
		return statusErrorf(http.StatusBadRequest, "%v", err)
	}
	return s.appendLog(w, r, run, archive.RadioDir+"/"+host+".jsonl", "radio")
}

// appendLog archives a body piece by piece. If the body ends early, the pieces stay: the next attempt tells the caller the size.
func (s *Server) appendLog(w http.ResponseWriter, r *http.Request, run *run, p, kind string) error {
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 || offset > math.MaxInt64-maxAppendBytes {
		return statusErrorf(http.StatusBadRequest, "offset %q: want the number of bytes before the body's", r.URL.Query().Get("offset"))
	}
	run.touch()
	if r.Header.Get(runapi.DigestHeader) != "" {
		return s.appendVerified(w, r, run, p, kind, offset)
	}
	body := &deadlineBody{body: http.MaxBytesReader(w, r.Body, maxAppendBytes), control: http.NewResponseController(w)}
	piece := make([]byte, min(pieceBytes, max(r.ContentLength, 0)+bytes.MinRead))
	for {
		n, readErr := io.ReadFull(body, piece)
		size, err := run.files.Append(p, offset, piece[:n])
		if err != nil {
			return s.recordRefusal(run, p, err)
		}
		s.metrics.bytes.WithLabelValues(kind).Add(float64(n))
		offset += int64(n)
		if readErr == io.EOF || readErr == io.ErrUnexpectedEOF {
			return s.writePosition(w, run, p, size)
		}
		if readErr != nil {
			return fmt.Errorf("request: %w", readErr)
		}
	}
}

// appendVerified archives a body after its digest was verified.
func (s *Server) appendVerified(w http.ResponseWriter, r *http.Request, run *run, p, kind string, offset int64) error {
	body, err := s.readVerified(r, &deadlineBody{body: http.MaxBytesReader(w, r.Body, runapi.MaxCheckedBytes), control: http.NewResponseController(w)})
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	size, err := run.files.Append(p, offset, body)
	if err != nil {
		return s.recordRefusal(run, p, err)
	}
	s.metrics.bytes.WithLabelValues(kind).Add(float64(len(body)))
	return s.writePosition(w, run, p, size)
}

// writePosition answers an append that was archived.
func (s *Server) writePosition(w http.ResponseWriter, run *run, p string, size int64) error {
	if err := run.clearRefused(p); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, runapi.LogPosition{Size: size})
}

// recordRefusal keeps in the run's record that a log was refused, so that the loss is named.
func (s *Server) recordRefusal(run *run, p string, err error) error {
	reason := ""
	switch {
	case errors.Is(err, archive.ErrQuota), errors.Is(err, archive.ErrTeamQuota):
		reason = refusedQuota
	case errors.Is(err, archive.ErrFull):
		reason = refusedFull
	default:
		return err
	}
	s.metrics.refused.WithLabelValues(reason).Inc()
	return errors.Join(err, run.recordRefused(p, err.Error()))
}
