package openapi

import (
	"reflect"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/runapi"
)

// Who calls an operation. Users are those whom Kubernetes allows.
var (
	byUsers    = []string{"users"}
	byOperator = []string{"operator"}
	byWorkflow = []string{"workflow"}
	byRadiod   = []string{"radiod"}
	byAgents   = []string{"agent"}
)

var offset = Parameter{Name: "offset", Type: "integer", Description: "Bytes before the first one that is wanted, or sent."}

const (
	bytesType = "application/octet-stream"
	linesType = "application/x-ndjson"
)

// Archive is the API of the results server (package runapi).
func Archive() API {
	return API{
		Title: "vignette results server",
		Description: "The archive of runs. Users reach it through Kubernetes' API server, which authenticates them. " +
			"A body may come with its SHA-256 in the header " + runapi.DigestHeader + ": one that does not match is refused with status 422, and must be sent again.",
		Server:           strings.Replace(runapi.ArchivePath("NAMESPACE"), "NAMESPACE", "{namespace}", 1),
		ServerParameters: map[string]string{"namespace": "The team's namespace."},
		PathParameters: map[string]string{
			"uid":     "UID of the Experiment.",
			"path":    "Path of a file below the run, with slashes, such as results/results.json.",
			"app":     "Name of an app on the calling agent's node.",
			"host":    "Name of the Kubernetes node.",
			"capture": "Name of the capture: run, or the Capture object's.",
			"network": "Name of the network.",
			"node":    "Name of the node.",
			"digest":  "Digest of a compiled scenario: sha256: and 64 hexadecimal digits.",
		},
		Problem:    runapi.Problem{},
		Operations: slices.Concat(runOperations(), fileOperations(), figureOperations(), agentOperations(), radiodOperations(), scenarioOperations()),
		Others: []any{
			runapi.RunRecord{}, runapi.StateRecord{}, runapi.KubernetesEvent{}, runapi.AgentEvent{}, runapi.RadioHeader{}, runapi.RadioSample{}, runapi.RadioPositions{},
			runapi.RadioLinks{}, runapi.RadioSteps{}, runapi.RadioRoutes{}, runapi.RadioGap{}, runapi.RadioPeer{}, runapi.RadioLateTime{}, runapi.RadioMissedSlots{},
			runapi.RadioLateChange{}, runapi.RadioStealTime{}, runapi.RadioLoad{}, runapi.CaptureSample{},
		},
		Values: map[reflect.Type][]any{
			reflect.TypeFor[runapi.Verb]():       {runapi.VerbStart, runapi.VerbStop},
			reflect.TypeFor[runapi.AgentPhase](): {runapi.AgentReady, runapi.AgentRunning, runapi.AgentStopped, runapi.AgentDone, runapi.AgentFailed},
		},
		Sources: []string{"internal/runapi", "operators/api/v1alpha1"},
	}
}

func runOperations() []Operation {
	return []Operation{
		{Route: "GET /v1/runs", ID: "listRuns", Callers: byUsers, Summary: "List runs, newest first", Answer: []runapi.RunSummary{},
			Query: []Parameter{{Name: "namespace", Description: "Runs of this namespace; without it, those of all namespaces that the caller may read."},
				{Name: "name", Description: "Runs of experiments of this name."}}},
		{Route: "GET /v1/runs/{uid}", ID: "getRun", Callers: byUsers, Summary: "Read the state of a run", Answer: runapi.State{},
			Query: []Parameter{{Name: "live", Type: "boolean", Description: "With figures of the run so far."}}},
		{Route: "PUT /v1/runs/{uid}", ID: "putPlan", Callers: byOperator, Summary: "Store the plan of a run; idempotent", Body: runapi.Plan{}, Answer: runapi.State{}},
		{Route: "DELETE /v1/runs/{uid}", ID: "deleteRun", Callers: byUsers, Summary: "Delete a run and its archive"},
		{Route: "POST /v1/runs/{uid}/incidents", ID: "addIncident", Callers: byOperator, Summary: "Add an incident to a run", Body: runapi.Incident{}},
		{Route: "POST /v1/runs/{uid}/events", ID: "addEvents", Callers: byOperator, Summary: "Add events of Kubernetes to a run; known events with the same count change nothing", Body: []runapi.KubernetesEvent{}},
		{Route: "POST /v1/runs/{uid}/seal", ID: "sealRun", Callers: byWorkflow, Summary: "End the collection of a run when every log is complete", Body: runapi.SealRequest{}, Answer: runapi.Manifest{}},
		{Route: "GET /v1/news", ID: "getUpdates", Callers: byOperator, Summary: "Wait up to 30 s for changes of any run", Answer: runapi.Updates{},
			Query: []Parameter{{Name: "since", Type: "integer", Required: true, Description: "The sequence of the previous answer, 0 for none."},
				{Name: "epoch", Description: "The epoch of the previous answer."}}},
	}
}

func fileOperations() []Operation {
	return []Operation{
		{Route: "GET /v1/runs/{uid}/files", ID: "listFiles", Callers: byUsers, Summary: "List the archived files of a run", Answer: runapi.Manifest{},
			Query: []Parameter{{Name: "digests", Type: "boolean", Description: "With the SHA-256 of every file of a sealed run."}}},
		{Route: "GET /v1/runs/{uid}/files/{path...}", ID: "getFile", Callers: byUsers, Summary: "Read one file of a run",
			AnswerTypes: []string{jsonType, linesType, "text/csv", "text/plain", bytesType},
			Query: []Parameter{offset, {Name: "follow", Type: "boolean",
				Description: "Continue as the file grows, until the run is sealed or its capture has ended, and wait for a file that does not exist yet."}}},
		{Route: "PUT /v1/runs/{uid}/files/results/{path...}", ID: "putResult", Callers: byWorkflow, Summary: "Store one file of the analysis", BodyTypes: []string{bytesType}},
		{Route: "GET /v1/runs/{uid}/archive.tar", ID: "getArchive", Callers: byUsers, Summary: "Read all files of a run, in a folder NAME-UID", AnswerTypes: []string{bytesType},
			Query: []Parameter{{Name: "only", Description: "Kinds of files, joined by commas: captures, logs, radio, records, results."},
				{Name: "without", Description: "Kinds of files to leave out, joined by commas."}}},
		{Route: "GET /v1/runs/{uid}/report", ID: "getReport", Callers: byUsers, Summary: "Read the report as a page that runs only its own scripts", AnswerTypes: []string{"text/html"}},
	}
}

func figureOperations() []Operation {
	namespace := Parameter{Name: "namespace", Description: "The team's namespace. Through the API server it is that of the path."}
	return []Operation{
		{Route: "GET /v1/compare", ID: "compareRuns", Callers: byUsers, Summary: "Compare analysed runs", AnswerTypes: []string{jsonType, "text/csv", "text/plain", "application/x-tex", "text/html"},
			Query: []Parameter{{Name: "run", Several: true, Required: true, Description: "UIDs of 2 to 1000 runs."},
				{Name: "format", Enum: []string{"json", "csv", "text", "latex", "html"}, Description: "Form of the answer; json without it."},
				{Name: "by", Description: "Field of the spec by which runs are grouped, or run."},
				{Name: "reference", Description: "CSV of figures to stand beside those of the runs, 32 KiB at most; without it those of the runs' campaigns."},
				{Name: "referenceName", Description: "Name of its file, for messages."}}},
		{Route: "GET /v1/metrics", ID: "getMetrics", Callers: byUsers, Summary: "Read the live series of a namespace's runs, as Prometheus' text", AnswerTypes: []string{"text/plain"},
			Query: []Parameter{namespace, {Name: "run", Description: "UID of a run of the namespace: the series of that run alone."}}},
		{Route: "GET /v1/usage", ID: "getUsage", Callers: byUsers, Summary: "Read a namespace's share of the archive", Answer: runapi.Usage{}, Query: []Parameter{namespace}},
		{Route: "GET /v1/openapi.json", ID: "getDescription", Callers: byUsers, Summary: "Read this description", AnswerTypes: []string{jsonType}},
	}
}

func agentOperations() []Operation {
	return []Operation{
		{Route: "GET /v1/agent/plan", ID: "getAgentPlan", Callers: byAgents, Summary: "Wait up to 30 s for a newer plan", Answer: runapi.AgentPlan{},
			Query: []Parameter{{Name: "app", Required: true, Description: "Name of the app."},
				{Name: "revision", Type: "integer", Required: true, Description: "Revision of the newest known plan, 0 for none."}}},
		{Route: "POST /v1/agent/report", ID: "postReport", Callers: byAgents, Summary: "Report a change, or a heartbeat", Body: runapi.AgentReport{}},
		{Route: "GET /v1/agent/clock", ID: "getClock", Callers: byAgents, Summary: "Read the server's clock", Answer: runapi.ClockReading{}},
		{Route: "GET /v1/agent/movement", ID: "getMovement", Callers: byAgents, Summary: "Read the movement of the node's platform", AnswerTypes: []string{bytesType},
			Query:       []Parameter{{Name: "instance", Description: "Instance on the node: the platform whose position it reports."}},
			Description: "A compiled scenario with the platform's positions and velocities alone. Empty if it has no position. 404 without a platform, 503 while it is made."},
		{Route: "POST /v1/agent/logs/{app}", ID: "postLogs", Callers: byAgents, Summary: "Archive parts of an app's logs", BodyTypes: []string{bytesType}, Answer: []runapi.LogAnswer{},
			Description: "Each part is a LogPart as one line of JSON, and then its bytes. The answer has one for each part, in their order. If the body ends early, the parts before are archived."},
	}
}

func radiodOperations() []Operation {
	return []Operation{
		{Route: "POST /v1/radio/{host}/{uid}", ID: "postRadio", Callers: byRadiod, Summary: "Append lines to a host's radio log", Query: []Parameter{required(offset)}, BodyTypes: []string{linesType}, Answer: runapi.LogPosition{},
			Description: "With status 409, offset is not the archived size, which the answer has."},
		{Route: "POST /v1/radio/{host}/{uid}/captures/{capture}/{network}/{node}", ID: "postCapture", Callers: byRadiod, Summary: "Append bytes to a capture", Query: []Parameter{offset}, BodyTypes: []string{bytesType}, Answer: runapi.LogPosition{}},
	}
}

var scenarioNamespace = Parameter{Name: "namespace", Description: "From the operator: the namespace of the Scenario. It may have half of the room."}

func scenarioOperations() []Operation {
	return []Operation{
		{Route: "GET /v1/scenarios/{digest}", ID: "getScenario", Callers: byUsers, Summary: "Read a compiled scenario; HEAD says whether there is one", AnswerTypes: []string{bytesType},
			Query: []Parameter{{Name: "bytes", Type: "integer", Description: "Size of a scenario that is to be stored: if there is no room for it, the answer is 507 instead of 404."}, scenarioNamespace}},
		{Route: "PUT /v1/scenarios/{digest}", ID: "putScenario", Callers: byUsers, Summary: "Store a compiled scenario; idempotent", Query: []Parameter{scenarioNamespace}, BodyTypes: []string{bytesType}},
	}
}

func required(p Parameter) Parameter {
	p.Required = true
	return p
}
