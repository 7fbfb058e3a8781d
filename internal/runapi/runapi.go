// Package runapi is the language of the server: what the operator tells it of a run, what agents
// ask and report, what the archive holds. Every message is JSON over HTTP; callers prove who they
// are with a Kubernetes token of audience vignette.dev/server in the Authorization header. Users are who Kubernetes lets read the archive
// of the run's namespace; they come through the API server (ArchivePath), or with such a token.
//
// Paths (UID is the Experiment's):
//
//	PUT  /v1/runs/UID                       operator: the Plan, idempotent; the answer is the State
//	GET  /v1/runs/UID                       operator, users: the State; ?live=true with LiveFigures
//	POST /v1/runs/UID/incidents             operator: one Incident
//	POST /v1/runs/UID/events                operator: up to MaxEvents KubernetesEvents as an array; those that the archive has
//	                                        with that count change nothing
//	POST /v1/runs/UID/seal                  workflow: a SealRequest; waits until every log is whole; the answer is a Manifest
//	GET  /v1/runs/UID/files                 workflow, users: the Manifest; ?digests=true with the SHA-256 of every file of a sealed
//	                                        run, of its records and results too
//	GET  /v1/runs/UID/files/PATH            workflow, users: one file; ?offset=N from byte N on; ?follow=true goes on as the
//	                                        file grows, until the run is sealed or its capture has ended; a file that is not
//	                                        there yet is waited for
//	PUT  /v1/runs/UID/files/results/PATH    workflow: one file of the analysis
//	GET  /v1/runs/UID/archive.tar           workflow, users: all files, in order of their paths, in a folder NAME-UID;
//	                                        ?only=KINDS or ?without=KINDS takes some, of FileKinds, joined by commas
//	GET  /v1/runs/UID/report                workflow, users: results/report.html as a page that may run nothing but itself
//	DELETE /v1/runs/UID                     operator, users with the verb delete: the run and its archive
//	GET  /v1/runs?namespace=N&name=M        users: the runs, newest first, as []RunSummary; without N those of all namespaces that the caller
//	                                        may read
//	GET  /v1/metrics?namespace=N            users: the series of that namespace's runs that go on, as Prometheus' text
//	GET  /v1/usage?namespace=N              users: the Usage of that namespace
//	GET  /v1/compare?run=UID&run=UID…       users: analysed runs side by side (docs/reference/comparison.md); &format=json, csv, text, latex
//	                                        or html; &by=FIELD of the spec, or run. 501 where nothing beside the server does it
//
//	GET  /v1/agent/plan?app=A&revision=R    agent: long poll (30 s) for an AgentPlan newer than R
//	POST /v1/agent/report                   agent: an AgentReport
//	GET  /v1/agent/clock                    agent: a ClockReading, for nodes whose clock is not their host's
//	POST /v1/agent/logs/APP                 agent: parts of any of the app's logs, one after the other, each a LogPart as
//	                                        one line of JSON and then its bytes; the answer has a LogAnswer for each, in
//	                                        the parts' order. Of a body that breaks off, what came before is archived
//	POST /v1/radio/HOST/UID?offset=N        radiod: RadioSample lines of one run from offset N on; the answer is a
//	                                        LogPosition, with status 409 where N is not the archived size
//
//	POST /v1/radio/HOST/UID/captures/CAPTURE/NETWORK/NODE?offset=N
//	                                        radiod: bytes of a capture, as above, archived as
//	                                        captures/CAPTURE/NETWORK/NODE.pcapng
//
//	PUT  /v1/scenarios/DIGEST               operator, users with the verb update: a compiled scenario, which must have that digest (sha256: and 64
//	                                        hexadecimal digits); idempotent. 422 where it has another one, 507 where there
//	                                        is no room: users have half of it
//	GET  /v1/scenarios/DIGEST               radiod, operator, users: that scenario; 404 where there is none. HEAD tells
//	                                        whether there is one; either is a use of it, for the retention
//
//	GET  /healthz                           anybody
//
// A body may come with its digest (DigestHeader), as those of the client do, and a LogPart with its own. What does not have
// it was damaged on its way: nothing of it is archived, the answer is 422, and it is sent again.
package runapi

import (
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Versions of the archived records, and of results.json. One grows where a program that knows the version before would misread
// what is written; a new field is no such thing. Version 1 of results has no offered deliveries, and lists notes among gaps.
const (
	SchemaVersion  = 1
	ResultsVersion = 2
)

// Verb of an Action.
type Verb string

// The verbs.
const (
	VerbStart Verb = "start"
	VerbStop  Verb = "stop"
)

// Target is one app on one node.
type Target struct {
	Node string `json:"node"`
	App  string `json:"app"`
}

// Action is something agents do at T0 + At.
type Action struct {
	// ID is unique within the run; an agent carries an action out at most once.
	ID string `json:"id"`
	// AtNanoseconds after T0.
	AtNanoseconds int64    `json:"atNanoseconds"`
	Verb          Verb     `json:"verb"`
	Targets       []Target `json:"targets"`
}

// PlannedApp is an app on a node, as far as the server and the analysis need it.
type PlannedApp struct {
	Name string `json:"name"`
	// Kind of the app: mosquitto, traffic, mgen or image.
	Kind string `json:"kind"`
	// Instances' names: node/app or node/app/i.
	Instances []string `json:"instances"`
	// Publishes tells that the instances send messages.
	Publishes bool `json:"publishes,omitempty"`
	// PublishTopics has the topic of each instance, in the order of Instances.
	PublishTopics []string `json:"publishTopics,omitempty"`
	// Subscriptions are the topic filters of every instance; null where the app subscribes to nothing, or each instance to topics of its own.
	Subscriptions []string `json:"subscriptions,omitempty"`
	// InstanceSubscriptions are the topic filters of each instance, in the order of Instances, where they differ.
	InstanceSubscriptions [][]string `json:"instanceSubscriptions,omitempty"`
	// Senders are further names by which the first instance logs what it sends: node/app/flow for the flows of an mgen app.
	Senders []string `json:"senders,omitempty"`
	// Brokers that the instances are clients of, as node/app; of several (failover) they are at one at a time. For a protocol without a
	// broker it is the name of the network that they broadcast on. Null where they have none, or one that may be joined to others
	// in ways that the plan does not know, as an image of the user's own.
	Brokers []string `json:"brokers,omitempty"`
}

// PlannedPassage is a way that messages take from one broker to another: a bridge, a cluster, a gateway or a mediator.
type PlannedPassage struct {
	// From and To are brokers, as node/app.
	From string `json:"from"`
	To   string `json:"to"`
	// Filters of the topics that pass, MQTT's; what none of them covers does not. They are of topics without StripPrefix.
	Filters []string `json:"filters"`
	// StripPrefix is what topics must begin with; it is taken away. AddPrefix is put before them then.
	StripPrefix string `json:"stripPrefix,omitempty"`
	AddPrefix   string `json:"addPrefix,omitempty"`
}

// PlannedNode is a tactical node and the pod that is it.
type PlannedNode struct {
	Name   string `json:"name"`
	Group  string `json:"group"`
	NEM    int32  `json:"nem"`
	PodUID string `json:"podUID"`
	// Pod is the pod's name in the experiment's namespace.
	Pod string `json:"pod"`
	// OpenManagement tells that eth0 of the node is open.
	OpenManagement bool `json:"openManagement,omitempty"`
	// Addresses on the radio networks, by network name.
	Addresses map[string]string `json:"addresses,omitempty"`
	Apps      []PlannedApp      `json:"apps"`
}

// PlannedLiveChange is a change of networks that somebody made by hand.
type PlannedLiveChange struct {
	// Name of the LiveChange object.
	Name string `json:"name"`
	// AtNanoseconds after T0.
	AtNanoseconds int64                  `json:"atNanoseconds"`
	Changes       []v1alpha1.RadioChange `json:"changes"`
}

// PlannedCapture is a capture of one network.
type PlannedCapture struct {
	// Name of the capture: run, or the Capture object's.
	Name    string `json:"name"`
	Network string `json:"network"`
	// Nodes whose radios are captured, all named.
	Nodes  []string `json:"nodes"`
	Filter string   `json:"filter,omitempty"`
	// LimitBytes is the most that is captured of each node; 0 is as much as the archive takes.
	LimitBytes int64 `json:"limitBytes,omitempty"`
	// Ended tells that the capture has ended before the run did.
	Ended bool `json:"ended,omitempty"`
}

// PlannedConfigMap is a key of a ConfigMap whose content apps were given, as a file or a variable.
type PlannedConfigMap struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// ResourceVersion of the ConfigMap that the nodes were given.
	ResourceVersion string `json:"resourceVersion"`
	// SHA256 of the content, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// PlannedScenario is a Scenario object as it was compiled.
type PlannedScenario struct {
	Name string `json:"name"`
	// Digest of the compiled scenario, sha256:…
	Digest     string                      `json:"digest"`
	Statistics v1alpha1.ScenarioStatistics `json:"statistics"`
}

// Plan is what the operator wants of a run. It grows: nodes first, then T0 and all actions.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Spec as resolved, for the run record.
	Spec v1alpha1.ExperimentSpec `json:"spec"`
	// Waveforms that named references resolved to.
	Waveforms map[string]v1alpha1.WaveformSpec `json:"waveforms,omitempty"`
	// Scenario that moves the nodes, as it was when the run was admitted.
	Scenario *PlannedScenario `json:"scenario,omitempty"`
	Nodes    []PlannedNode    `json:"nodes"`
	// Passages between brokers, which decide with subscriptions who is to receive what.
	Passages []PlannedPassage `json:"passages,omitempty"`
	// ConfigMaps that apps take files and variables from. Every node has these contents; later changes do not reach it.
	ConfigMaps []PlannedConfigMap `json:"configMaps,omitempty"`
	// T0 once it is set.
	T0 *time.Time `json:"t0,omitempty"`
	// Armed are all starts and stops of the run, which agents hold before T0. A newer version supersedes what has not been carried out.
	Armed        []Action `json:"armed,omitempty"`
	ArmedVersion int64    `json:"armedVersion,omitempty"`
	// LiveChanges that people made while it ran, in order of time.
	LiveChanges []PlannedLiveChange `json:"liveChanges,omitempty"`
	// Captures that the run has or had.
	Captures []PlannedCapture `json:"captures,omitempty"`
	// Phase of the experiment, for people who look into the archive.
	Phase v1alpha1.ExperimentPhase `json:"phase"`
	// Message of the experiment's status.
	Message string `json:"message,omitempty"`
	// MeasureStartNanoseconds and MeasureEndNanoseconds after T0: the first start of a publisher and the end of the
	// drain, between which data volumes are averaged. The end is set when the drain has ended.
	MeasureStartNanoseconds *int64 `json:"measureStartNanoseconds,omitempty"`
	MeasureEndNanoseconds   *int64 `json:"measureEndNanoseconds,omitempty"`
	// Finish tells every agent that the run is over, before the phase does: stop what runs, ship everything, report done.
	Finish bool `json:"finish,omitempty"`
	// Environment is the rest of the run record: versions, hosts, image digests.
	Environment *Environment `json:"environment,omitempty"`
	// RerunOf says which run this one repeats, if it repeats one with the same spec, and BasedOn whose spec was changed.
	RerunOf *Rerun `json:"rerunOf,omitempty"`
	BasedOn *Rerun `json:"basedOn,omitempty"`
	// Campaign says which campaign this is a run of, if it is one.
	Campaign *PlannedCampaign `json:"campaign,omitempty"`
}

// PlannedCampaign is the place of a run in a campaign.
type PlannedCampaign struct {
	// Name and UID of the Campaign.
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Round of the campaign, from 1.
	Round int64 `json:"round"`
	// Point of the matrix, by its name.
	Point string `json:"point"`
	// Levels of the point, by axis.
	Levels map[string]string `json:"levels,omitempty"`
}

// Usage is what the runs of a namespace have in the archive.
type Usage struct {
	Namespace string `json:"namespace"`
	Runs      int    `json:"runs"`
	// Bytes of logs, captures, records and results.
	Bytes int64 `json:"bytes"`
	// QuotaBytes is the most that they may have; 0 is no bound. Without room no run begins, and logs of those that go on are cut off.
	QuotaBytes int64 `json:"quotaBytes"`
	// RetentionSeconds after which a run to which nothing happens is deleted; 0 is never.
	RetentionSeconds float64 `json:"retentionSeconds"`
}

// RunRecord is run.json of the archive.
type RunRecord struct {
	SchemaVersion int `json:"schemaVersion"`
	// Revision grows with every change of the plan.
	Revision int64 `json:"revision"`
	Plan
}

// StateRecord is state.json of the archive: what agents reported and what went wrong.
type StateRecord struct {
	SchemaVersion int          `json:"schemaVersion"`
	Agents        []AgentState `json:"agents"`
	Incidents     []Incident   `json:"incidents"`
	// Refused are logs that the archive could not take, by path, and why.
	Refused map[string]string `json:"refused,omitempty"`
	// RefusedAt is when that began.
	RefusedAt map[string]time.Time `json:"refusedAt,omitempty"`
	// Sealed tells that manifest.json is there and logs do not grow any more.
	Sealed bool `json:"sealed"`
	// Counters as they were at the seal.
	Counters *Counters `json:"counters,omitempty"`
}

// Counters are message events counted as they are archived.
type Counters struct {
	Triggered int64 `json:"triggered"`
	Sent      int64 `json:"sent"`
	Received  int64 `json:"received"`
	Processed int64 `json:"processed"`
	// LastReceivedNanoseconds is the time of the newest received event, Unix epoch; 0 for none.
	LastReceivedNanoseconds int64 `json:"lastReceivedNanoseconds"`
}

// AgentPhase is where an agent is.
type AgentPhase string

// The phases of an agent. Ready: connected, files written, nothing started. Done: every log is shipped, nothing runs.
const (
	AgentReady   AgentPhase = "ready"
	AgentRunning AgentPhase = "running"
	AgentStopped AgentPhase = "stopped"
	AgentDone    AgentPhase = "done"
	AgentFailed  AgentPhase = "failed"
)

// AgentReport is what an agent says of itself, on every change and every 5 s as a heartbeat.
type AgentReport struct {
	App   string     `json:"app"`
	Phase AgentPhase `json:"phase"`
	// ArmedVersion of the actions that the agent holds and will carry out without a server.
	ArmedVersion int64 `json:"armedVersion,omitempty"`
	// ExecutedActions is how many of these it has carried out, in order of time.
	ExecutedActions int `json:"executedActions,omitempty"`
	// ArmedTooLate is the first start that arrived after its time; such starts are not carried out.
	ArmedTooLate []string `json:"armedTooLate,omitempty"`
	// Restarts of instances that ended by themselves.
	Restarts int `json:"restarts"`
	// Message says why the agent failed: the app, its exit code, its last lines of output.
	Message string `json:"message,omitempty"`
	// Reason for it in one word, where there is one, such as ReasonKeyNotFound.
	Reason string `json:"reason,omitempty"`
	// WorstLatenessSeconds of the actions carried out so far.
	WorstLatenessSeconds float64 `json:"worstLatenessSeconds"`
	// ArchivedUntilNanoseconds, Unix epoch: the archive has everything that was in the logs at that time; 0 for not yet.
	ArchivedUntilNanoseconds int64 `json:"wholeUntilTs,omitempty"`
	// Gaps are times of which the agent knows that logs may lack something, at most MaxAgentGaps.
	Gaps []AgentGap `json:"gaps,omitempty"`
	// Clock of a node that has one of its own, as virtual machines do; absent where it is the host's.
	Clock *AgentClock `json:"clock,omitempty"`
}

// ReasonKeyNotFound of an agent that has failed: its app takes a variable from a key that is not in the Secret. Of a pod's the kubelet says so.
const ReasonKeyNotFound = "KeyNotFound"

// AgentClock is what a node knows of its own clock, which is measured against the server's and corrected time and again.
type AgentClock struct {
	// OffsetSeconds is the node's clock less the server's when it was measured last, before it was corrected for that, and differs
	// from what it really was by no more than UncertaintySeconds: half the round trip.
	OffsetSeconds      float64 `json:"offsetSeconds"`
	UncertaintySeconds float64 `json:"uncertaintySeconds"`
	// WorstOffsetSeconds, without its sign, and WorstUncertaintySeconds of all measurements since the clock was set.
	WorstOffsetSeconds      float64 `json:"worstOffsetSeconds"`
	WorstUncertaintySeconds float64 `json:"worstUncertaintySeconds"`
	// SetSeconds is by how much the clock was stepped at the start, before any app ran.
	SetSeconds float64 `json:"setSeconds"`
	// Measurements since then, and the time of the last one, Unix epoch.
	Measurements        int   `json:"measurements"`
	MeasuredNanoseconds int64 `json:"measuredTs"`
}

// ClockReading has the server's clock, Unix epoch, at the moments at which a question came and its answer went, as in NTP (RFC 5905).
type ClockReading struct {
	ReceivedNanoseconds int64 `json:"receivedTs"`
	SentNanoseconds     int64 `json:"sentTs"`
}

// MaxAgentGaps of one agent; the last one goes on to its end.
const MaxAgentGaps = 50

// AgentGap is a time in which a node's logs could not be written.
type AgentGap struct {
	// FromNanoseconds and ToNanoseconds, Unix epoch; ToNanoseconds is 0 where it has not ended.
	FromNanoseconds int64  `json:"fromTs"`
	ToNanoseconds   int64  `json:"toTs,omitempty"`
	Reason          string `json:"reason"`
}

// AgentState is an agent's last report as the server has it.
type AgentState struct {
	Node string `json:"node"`
	AgentReport
	// ReportedAt is the server's time of the report.
	ReportedAt time.Time `json:"reportedAt"`
}

// AgentPlan is what one agent is to do.
type AgentPlan struct {
	// Revision grows with every change.
	Revision int64      `json:"revision"`
	T0       *time.Time `json:"t0,omitempty"`
	// Actions for this app on this node, all of them, in order of time.
	Actions      []Action `json:"actions,omitempty"`
	ArmedVersion int64    `json:"armedVersion,omitempty"`
	// Finish tells the agent that the run is over: stop what runs, ship all, report done, exit.
	Finish bool `json:"finish,omitempty"`
}

// LogPosition is the archived size of a log, bytes.
type LogPosition struct {
	Size int64 `json:"size"`
}

// Bounds of a request with parts of logs.
const (
	// MaxLogParts of one request.
	MaxLogParts = 1024
	// MaxLogPartHeaderBytes of a LogPart's line with its end: names of files have up to 255 bytes, six times that in JSON.
	MaxLogPartHeaderBytes = 4096
	// MaxCheckedBytes of a part, or of a piece of a radio log, that comes with a digest: it is held in memory until it is checked.
	MaxCheckedBytes = 1 << 20
)

// LogPart is the line before the bytes of one part of a log.
type LogPart struct {
	// File is the log's name: 1 to 128 letters, digits, dots, hyphens and underscores.
	File string `json:"file"`
	// Offset of the part in the log, bytes.
	Offset int64 `json:"offset"`
	// Bytes of the part; a log may have a part of 0, which archives it as an empty one.
	Bytes int64 `json:"bytes"`
	// SHA256 of the part's bytes, in hexadecimal; a part that has one is at most MaxCheckedBytes long. Without, it is not checked.
	SHA256 string `json:"sha256,omitempty"`
}

// LogAnswer tells what became of one LogPart, whatever became of the others.
type LogAnswer struct {
	// Status is an HTTP status: 200, 400 where the archive does not take a file of this name, 409 where the offset is
	// not the archived size, 410 where the run is sealed, 422 where the part has another digest than it says, 507 where
	// the run's quota or the volume is used up.
	Status int `json:"status"`
	// Size is the archived size of the log, bytes, with status 200 and 409.
	Size *int64 `json:"size,omitempty"`
	// Error says what was wrong with the part, and what would be right.
	Error string `json:"error,omitempty"`
}

// MaxCompared is the most runs of a comparison: as many as a round of a campaign has at most.
const MaxCompared = 1000

// Problem is the body of every answer that is not a success.
type Problem struct {
	// Error says what was wrong with the request, and what would be right.
	Error string `json:"error"`
	// Size is the archived size of a log, with status 409 of an append.
	Size *int64 `json:"size,omitempty"`
}

// Incident is something that went wrong with a node, or that somebody did to it.
type Incident struct {
	// What happened, one word: NodeFailed, AppFailed, Evicted, HostLost …
	What string `json:"what"`
	Node string `json:"node,omitempty"`
	// FromSeconds and ToSeconds after T0; ToSeconds is absent where it has not ended.
	FromSeconds float64  `json:"fromSeconds"`
	ToSeconds   *float64 `json:"toSeconds,omitempty"`
	Reason      string   `json:"reason"`
}

// State is what the server knows of a run.
type State struct {
	Plan      Plan         `json:"plan"`
	Agents    []AgentState `json:"agents"`
	Counters  Counters     `json:"counters"`
	Incidents []Incident   `json:"incidents,omitempty"`
	// Sealed tells that the logs are complete, or as complete as they will be.
	Sealed bool `json:"sealed"`
	// Results is the analysis' results.json, once it is there.
	Results *Results `json:"results,omitempty"`
	// Live are figures so far, where they were asked for and the run goes on.
	Live *LiveFigures `json:"live,omitempty"`
}

// Updates are the runs of which something new is known: what an agent reports for the first time, an incident, a seal. Figures that grow all the
// time, such as counters, are no news.
type Updates struct {
	// Epoch is the life of the server that Sequence belongs to. In another one anything may have changed.
	Epoch string `json:"epoch"`
	// Sequence to ask with the next time.
	Sequence int64 `json:"sequence"`
	// Runs by their UIDs, in no order.
	Runs []string `json:"runs"`
}

// LiveFigures of a run are what its logs and radios tell so far; its results are what counts in the end.
type LiveFigures struct {
	// Triggered and Sent messages of the whole run.
	Triggered int64 `json:"triggered"`
	Sent      int64 `json:"sent"`
	// Headline is the group of the deliveries below: radio, or all. They are counted as in the results.
	Headline string `json:"headline"`
	Offered  int64  `json:"offered"`
	Expected int64  `json:"expected"`
	Received int64  `json:"received"`
	// DelaySeconds of these deliveries so far, within 0.25 %; null where nothing was received.
	DelaySeconds *LiveDelays `json:"delaySeconds"`
	// QueueFrames wait or are under way at the nodes' egress, of which DeepestFrames at DeepestQueue (a node), where there are any.
	QueueFrames   int64  `json:"queueFrames"`
	DeepestQueue  string `json:"deepestQueue,omitempty"`
	DeepestFrames int64  `json:"deepestFrames,omitempty"`
	// LateReleases are frames that radios released more than 2 ms late, SlotsMissed TDMA slots that the emulation was too late for.
	// WorstLatenessSeconds of either.
	LateReleases uint64 `json:"lateReleases"`
	// LatenessCounts are the frames released since the node was attached, by how late they were, in the buckets of
	// radio.LatenessBounds, without empty ones at the end.
	LatenessCounts       []uint64 `json:"latenessCounts,omitempty"`
	SlotsMissed          uint64   `json:"slotsMissed"`
	WorstLatenessSeconds float64  `json:"worstLatenessSeconds"`
}

// LiveDelays are quantiles of delays in seconds.
type LiveDelays struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// SealRequest asks for the end of collection.
type SealRequest struct {
	// WaitSeconds is the longest time to wait for agents that have not shipped everything.
	WaitSeconds float64 `json:"waitSeconds"`
}

// ManifestFile is one archived file.
type ManifestFile struct {
	// Path below the run, such as logs/nor/bft/messages-1.jsonl.
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// Manifest lists what the archive has of a run, and what it lacks.
type Manifest struct {
	SchemaVersion int            `json:"schemaVersion"`
	UID           string         `json:"uid"`
	Files         []ManifestFile `json:"files"`
	// Gaps are the logs that are missing or not whole.
	Gaps []Gap `json:"gaps"`
}

// RunSummary is one line of the archive's list.
type RunSummary struct {
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	UID       string                   `json:"uid"`
	Phase     v1alpha1.ExperimentPhase `json:"phase"`
	T0        *time.Time               `json:"t0,omitempty"`
	// Campaign that it is a run of, if it is one.
	Campaign *PlannedCampaign `json:"campaign,omitempty"`
	// Problem tells which records of the run could not be read and were put aside, if any.
	Problem string `json:"problem,omitempty"`
}

// AgentEvent is a line of an agent's own log, agent.jsonl.
type AgentEvent struct {
	TimeNanoseconds int64 `json:"ts"`
	// Event: ready, armed, started, stopped, exited (by itself), restarted, armedTooLate, failed, spoolFull, resumed,
	// killed, notHeld (started directly, not released from a hold), notArchived, clockStep, cpuThrottled,
	// cpuPressure, disconnected, connected, finished.
	Event    string `json:"event"`
	Instance string `json:"instance,omitempty"`
	ActionID string `json:"actionID,omitempty"`
	// PlannedNanoseconds and LatenessSeconds of a start or stop.
	PlannedNanoseconds int64   `json:"plannedTs,omitempty"`
	LatenessSeconds    float64 `json:"latenessSeconds,omitempty"`
	// ExitCode of an exit; 128 + n for signal n.
	ExitCode *int `json:"exitCode,omitempty"`
	// Message for people.
	Message string `json:"message,omitempty"`
}

// RadioSample is what radiod counted for one node on one network; counters since the attachment.
type RadioSample struct {
	TimeNanoseconds int64  `json:"ts"`
	Network         string `json:"network"`
	Node            string `json:"node"`
	// Sent is what the node handed to its radio, Received what its radio handed to the node.
	FramesSent     uint64 `json:"framesSent"`
	BytesSent      uint64 `json:"bytesSent"`
	FramesReceived uint64 `json:"framesReceived"`
	BytesReceived  uint64 `json:"bytesReceived"`
	// FramesCorrupted were sent on with a wrong bit.
	FramesCorrupted uint64 `json:"framesCorrupted,omitempty"`
	// Drops by reason: loss, queueFull, noReceiver, silent, tapRing, routerSocket, inFlightAtEnd, radiodRestarted (which the
	// framesLost of RadioGaps count too) …
	Drops map[string]uint64 `json:"drops,omitempty"`
	// QueueDepth is the number of frames waiting or under way on the node's egress.
	QueueDepth int `json:"queueDepth"`
	// WorstLatenessSeconds of a frame's release since the last sample, and LateReleases over 2 ms in that time.
	WorstLatenessSeconds float64 `json:"worstLatenessSeconds"`
	LateReleases         uint64  `json:"lateReleases"`
	// LatenessCounts are the frames released since the node was attached, by how late they were, in the buckets of
	// radio.LatenessBounds, without empty ones at the end.
	LatenessCounts []uint64 `json:"latenessCounts,omitempty"`
	// SlotsUsed are the time slots of a TDMA radio in which it sent, SlotsMissed those that the emulation was too late for
	// while something waited: overload, not radio. WorstSlotLatenessSeconds of a slot's start since the last sample.
	SlotsUsed                uint64  `json:"slotsUsed,omitempty"`
	SlotsMissed              uint64  `json:"slotsMissed,omitempty"`
	WorstSlotLatenessSeconds float64 `json:"worstSlotLatenessSeconds,omitempty"`
	// Routing… is what of all that the platform's routing protocol sent and received: packets, and bytes of their frames.
	// Absent where a node does not route by olsrv2 or olsrv1.
	RoutingPacketsSent     *uint64 `json:"routingPacketsSent,omitempty"`
	RoutingBytesSent       *uint64 `json:"routingBytesSent,omitempty"`
	RoutingPacketsReceived *uint64 `json:"routingPacketsReceived,omitempty"`
	RoutingBytesReceived   *uint64 `json:"routingBytesReceived,omitempty"`
}

// The lines of a host's radio log, radio/HOST.jsonl, are RadioSamples and, told apart by their one
// distinguishing field, RadioHeaders (host), RadioGaps (gap), CaptureSamples (capture), RadioPositions (positions),
// RadioLinks (receiver), RadioSteps (steps), RadioRoutes (routing), RadioHosts (peer), RadioLates (lateSeconds),
// RadioMisseds (slotsMissedFrom), RadioStolen (stolenSeconds) and RadioLoads (busySeconds).

// RadioPositions are where a network's nodes on the host are, by its own reckoning at that time: about once a second those
// that have moved since they were last written.
type RadioPositions struct {
	TimeNanoseconds int64  `json:"ts"`
	Network         string `json:"network"`
	// Positions by node: latitude and longitude in degrees, altitude in metres (WGS 84), rounded to 1e-6 degrees and 0.1 m.
	Positions map[string][3]float64 `json:"positions"`
}

// MaxRadioRoutes is about how many routes of one run a second has in a host's log. Where more have changed, nodes take turns: the
// later line has all changes since the earlier one.
const MaxRadioRoutes = 4096

// RadioRoutes are a node's routes that have changed since they were last written, about once a second.
type RadioRoutes struct {
	TimeNanoseconds int64  `json:"ts"`
	Node            string `json:"node"`
	// Routing is the protocol that found them.
	Routing string `json:"routing"`
	// Complete: these are all that there are, whatever was written before.
	Complete bool         `json:"whole,omitempty"`
	Routes   []RadioRoute `json:"routes,omitempty"`
	// Gone are the destinations that there are no routes to any more.
	Gone []string `json:"gone,omitempty"`
}

// RadioRoute of a node.
type RadioRoute struct {
	// To is the destination in CIDR form, Via the next node's address; absent where the destination is a neighbour.
	To  string `json:"to"`
	Via string `json:"via,omitempty"`
	// Network that the route leads through.
	Network string `json:"network"`
	Hops    int    `json:"hops"`
	Metric  uint32 `json:"metric"`
}

// MaxRadioLinks is how many links of one network a second has in a host's log. Where there are more, receivers take turns; none
// is lost, as their counters go on.
const MaxRadioLinks = 512

// RadioLinks tell what one node's radio has heard of others: about once a second those links on which something was sent
// since they were last written.
type RadioLinks struct {
	TimeNanoseconds int64  `json:"ts"`
	Network         string `json:"network"`
	// Receiver is the node that hears.
	Receiver string      `json:"receiver"`
	From     []RadioLink `json:"from"`
}

// RadioLink is what one radio has heard of another. Figures in dB are rounded to 0.01.
type RadioLink struct {
	// Node that sends.
	Node string `json:"node"`
	// SINRDecibels at the receiver, of the last transmission above its sensitivity; PathlossDecibels between the antennas.
	// What is not known is absent.
	SINRDecibels     *float64 `json:"sinrDB,omitempty"`
	PathlossDecibels *float64 `json:"pathlossDB,omitempty"`
	// Received are the transmissions that were received since the attachment, Missed those that were not, by reason:
	// belowSensitivity, lowSINR, interfered, halfDuplex, notListening …
	Received uint64            `json:"heard"`
	Missed   map[string]uint64 `json:"missed,omitempty"`
}

// RadioSteps tell how a network's radios kept up with the scenario: about once a second while it has steps.
type RadioSteps struct {
	TimeNanoseconds int64  `json:"ts"`
	Network         string `json:"network"`
	// Steps of positions, pathloss or jammers prepared so far, LateSteps those over 2 ms after they should have held.
	Steps     uint64 `json:"steps"`
	LateSteps uint64 `json:"lateSteps,omitempty"`
	// WorstStepLatenessSeconds since the last sample.
	WorstStepLatenessSeconds float64 `json:"worstStepLatenessSeconds,omitempty"`
}

// RadioHeader is a line before samples: where and under which settings they were made.
type RadioHeader struct {
	TimeNanoseconds int64 `json:"ts"`
	// Host is the Kubernetes node's name.
	Host   string `json:"host"`
	Kernel string `json:"kernel"`
	// Nodes that the settings are of.
	Nodes []string `json:"nodes,omitempty"`
	// Settings of the nodes' namespaces, by name: kernel settings as sysctl(8) writes them, and INTERFACE.mtu
	// (bytes) and INTERFACE.txqueuelen (frames).
	Settings map[string]string `json:"settings,omitempty"`
}

// RadioGap is a time in which a host's radios did not work as the model says.
type RadioGap struct {
	// TimeNanoseconds is when the gap was written down.
	TimeNanoseconds int64 `json:"ts"`
	// Gap is what it was: radiodRestarted (frames under way were lost, and none was carried), attachmentLost, or
	// hostUnreachable (nothing went between its nodes and those of another host).
	Gap string `json:"gap"`
	// Node that the gap is for; empty for all of the host's nodes of the run.
	Node string `json:"node,omitempty"`
	// FromNanoseconds and ToNanoseconds by the real-time clock; ToNanoseconds is 0 where it has not ended. When it
	// ends, another gap of the same kind, node and FromNanoseconds says so.
	FromNanoseconds int64  `json:"fromTs"`
	ToNanoseconds   int64  `json:"toTs,omitempty"`
	Reason          string `json:"reason"`
	// FramesLost in the gap, where they could be counted: frames that were under way, or had no room in their nodes' interfaces.
	FramesLost uint64 `json:"framesLost,omitempty"`
}

// CaptureSample tells how a capture at one node's radio goes, about once a second while it changes,
// and when it ends; counters since the capture began.
type CaptureSample struct {
	TimeNanoseconds int64  `json:"ts"`
	Capture         string `json:"capture"`
	Network         string `json:"network"`
	Node            string `json:"node"`
	// Frames and Bytes written, of those that matched the filter.
	Frames uint64 `json:"frames"`
	Bytes  uint64 `json:"bytes"`
	// Dropped frames that could not be written in time or for want of room, by reason: ringFull, limit, spoolFull …
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	// Ended tells why the capture has ended: limit, stopped or detached; empty while it goes on.
	Ended string `json:"ended,omitempty"`
}
