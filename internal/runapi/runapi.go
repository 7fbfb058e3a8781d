// Package runapi defines the requests and answers of the server: the operator's plans, the agents' requests and reports, and
// the contents of the archive. Every message is JSON over HTTP. Callers authenticate with a Kubernetes token of audience
// vignette.dev/server in the Authorization header. Users are those whom Kubernetes allows to read the archive of the run's
// namespace; they connect through the API server (ArchivePath), or with such a token.
//
// Paths (UID is the Experiment's):
//
//	PUT  /v1/runs/UID                       operator: the Plan, idempotent; the answer is the State
//	GET  /v1/runs/UID                       operator, users: the State; ?live=true with LiveFigures
//	POST /v1/runs/UID/incidents             operator: one Incident
//	POST /v1/runs/UID/events                operator: up to MaxEvents KubernetesEvents as an array; known events with the
//	                                        same count change nothing
//	POST /v1/runs/UID/seal                  workflow: a SealRequest; waits until every log is complete; the answer is a Manifest
//	GET  /v1/runs/UID/files                 workflow, users: the Manifest; ?digests=true with the SHA-256 of every file of a sealed
//	                                        run, of its records and results too
//	GET  /v1/runs/UID/files/PATH            workflow, users: one file; ?offset=N from byte N on; ?follow=true continues as the
//	                                        file grows, until the run is sealed or its capture has ended, and waits for a
//	                                        file that does not exist yet
//	PUT  /v1/runs/UID/files/results/PATH    workflow: one file of the analysis
//	GET  /v1/runs/UID/archive.tar           workflow, users: all files, in order of their paths, in a folder NAME-UID;
//	                                        ?only=KINDS or ?without=KINDS takes some, of FileKinds, joined by commas
//	GET  /v1/runs/UID/report                workflow, users: results/report.html as a page that runs only its own scripts
//	DELETE /v1/runs/UID                     operator, users with the verb delete: the run and its archive
//	GET  /v1/runs?namespace=N&name=M        users: the runs, newest first, as []RunSummary; without N those of all namespaces that the caller
//	                                        may read
//	GET  /v1/metrics?namespace=N&run=UID    users: the live series of that namespace's runs, or of one, as Prometheus' text
//	GET  /v1/usage?namespace=N              users: the Usage of that namespace
//	GET  /v1/compare?run=UID&run=UID…       users: a comparison of analysed runs (docs/reference/comparison.md); &format=json, csv, text, latex
//	                                        or html; &by=FIELD of the spec, or run. 501 without an analysis beside the server
//
//	GET  /v1/agent/plan?app=A&revision=R    agent: long poll (30 s) for an AgentPlan newer than R
//	POST /v1/agent/report                   agent: an AgentReport
//	GET  /v1/agent/clock                    agent: a ClockReading, for nodes that have their own clock
//	GET  /v1/agent/movement?instance=I      agent: the movement of its node's platform, or of the one that instance I reports: a compiled
//	                                        scenario with its positions and velocities alone, empty if it has no position. 404 without a
//	                                        platform, 503 while it is made
//	POST /v1/agent/logs/APP                 agent: parts of any of the app's logs, one after the other, each a LogPart as
//	                                        one line of JSON and then its bytes; the answer has a LogAnswer for each, in
//	                                        the parts' order. If the body ends early, the parts before are archived
//	POST /v1/radio/HOST/UID?offset=N        radiod: RadioSample lines of one run from offset N on; the answer is a
//	                                        LogPosition, with status 409 if N is not the archived size
//
//	POST /v1/radio/HOST/UID/captures/CAPTURE/NETWORK/NODE?offset=N
//	                                        radiod: bytes of a capture, as above, archived as
//	                                        captures/CAPTURE/NETWORK/NODE.pcapng
//
//	PUT  /v1/scenarios/DIGEST               operator, users with the verb update: a compiled scenario, which must have that digest (sha256: and 64
//	                                        hexadecimal digits); idempotent. 422 if it has another one, 507 if there
//	                                        is no space: users have half of it, and so has a namespace, which the
//	                                        operator names by ?namespace=NS, also in the next
//	GET  /v1/scenarios/DIGEST               radiod, operator, users: that scenario; 404 if there is none. HEAD says
//	                                        whether there is one; either is a use of it, which keeps it from being
//	                                        deleted. With ?bytes=N: 507 instead of 404 if there is no room for N bytes
//
//	GET  /v1/openapi.json                   anybody: these paths and their JSON as OpenAPI 3.1
//	GET  /healthz                           anybody
//
// A body may come with its digest (DigestHeader), as the client's do, and a LogPart with its own. If the digest does not match,
// the data was damaged in transit: nothing of it is archived, the answer is 422, and it must be sent again.
package runapi

import (
	"strconv"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Versions of the archived records, and of results.json. A version grows if a program of the previous version would misread the
// file; a new field does not count. Version 1 of records has no table of streams, so it cannot be analysed again. Version 1 of
// results has no offered deliveries, and lists notes among gaps.
const (
	SchemaVersion  = 2
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

// Action is something that agents do at T0 + At.
type Action struct {
	// ID is unique within the run; an agent executes an action at most once.
	ID string `json:"id"`
	// AtNanoseconds after T0.
	AtNanoseconds int64    `json:"atNanoseconds"`
	Verb          Verb     `json:"verb"`
	Targets       []Target `json:"targets"`
}

// PlannedApp is what the server and the analysis need to know of an app on a node.
type PlannedApp struct {
	Name string `json:"name"`
	// Kind of the app: mosquitto, traffic, mgen or image.
	Kind string `json:"kind"`
	// Instances' names: node/app or node/app/i.
	Instances []string `json:"instances"`
	// Publishes is set if the instances send messages, Subscribes if they receive some.
	Publishes  bool `json:"publishes,omitempty"`
	Subscribes bool `json:"subscribes,omitempty"`
	// Protocol by which they do; empty for brokers and where it is not known.
	Protocol string `json:"protocol,omitempty"`
	// Senders are further names under which the first instance logs what it sends: node/app/flow for the flows of an mgen app.
	Senders []string `json:"senders,omitempty"`
	// Brokers of the instances, as node/app; with several (failover) an instance uses one at a time. For a protocol without a broker it
	// is the name of the network on which they broadcast. Null without a broker, and for one that may be connected to others in
	// ways that the plan does not know, such as a user's own image.
	Brokers []string `json:"brokers,omitempty"`
	// BrokerNode runs their broker, the first one with several; empty without a broker.
	BrokerNode string `json:"brokerNode,omitempty"`
	// Platforms of the scenario whose positions the instances report, in their order; null where they report the node's.
	Platforms []int `json:"platforms,omitempty"`
}

// Streams is the table of who should receive whose messages.
type Streams struct {
	Rows []PlannedStream `json:"rows"`
	// Audiences are sets of instances that receive the same. Rows refer to them by index, from 0.
	Audiences [][]string `json:"audiences"`
}

// PlannedStream is what its publishers send to one topic, and who receives it.
type PlannedStream struct {
	// Publishers are instances, or Senders of one.
	Publishers []string `json:"publishers"`
	// Topic to which they send. It is empty for programs of the user's own, whose topics are in their logs: this row is for topics
	// that match one of Filters, as in MQTT.
	Topic   string   `json:"topic,omitempty"`
	Filters []string `json:"filters,omitempty"`
	// Heard are the receivers, by the topic under which they receive; null for nobody.
	Heard []Heard `json:"heard,omitempty"`
}

// Heard are instances that receive a stream under one topic.
type Heard struct {
	// Topic that brokers on the way gave the messages; empty for that of the publisher.
	Topic string `json:"topic,omitempty"`
	// Audience is their index among the audiences. A publisher that is one of them does not receive from itself, nor from another
	// name of its process.
	Audience int `json:"audience"`
}

// PlannedPassage is a way of messages from one broker to another: a bridge, a cluster, a gateway or a mediator.
type PlannedPassage struct {
	// From and To are brokers, as node/app.
	From string `json:"from"`
	To   string `json:"to"`
	// Filters, as in MQTT, of the topics that pass, without StripPrefix.
	Filters []string `json:"filters"`
	// StripPrefix is removed from topics, which must begin with it; then AddPrefix is put before them.
	StripPrefix string `json:"stripPrefix,omitempty"`
	AddPrefix   string `json:"addPrefix,omitempty"`
}

// PlannedNode is a tactical node with its pod.
type PlannedNode struct {
	Name   string `json:"name"`
	Group  string `json:"group"`
	NEM    int32  `json:"nem"`
	PodUID string `json:"podUID"`
	// Pod is the pod's name in the experiment's namespace.
	Pod string `json:"pod"`
	// Platform of the scenario that carries the node; null for none, and for a fixed node.
	Platform *int32 `json:"platform,omitempty"`
	// OpenManagement is set if eth0 of the node is open.
	OpenManagement bool `json:"openManagement,omitempty"`
	// Addresses on the radio networks, by network name.
	Addresses map[string]string `json:"addresses,omitempty"`
	Apps      []PlannedApp      `json:"apps"`
}

// PlannedLiveChange is a change of networks by hand.
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
	// LimitBytes of each node's file; 0 means the archive's limit.
	LimitBytes int64 `json:"limitBytes,omitempty"`
	// Ended is set if the capture ended before the run.
	Ended bool `json:"ended,omitempty"`
}

// PlannedConfigMap is a key of a ConfigMap that apps have as a file or a variable.
type PlannedConfigMap struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// ResourceVersion of the ConfigMap in the nodes.
	ResourceVersion string `json:"resourceVersion"`
	// SHA256 of the content, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// PlannedScenario is a compiled Scenario object.
type PlannedScenario struct {
	Name string `json:"name"`
	// Digest of the compiled scenario, sha256:…
	Digest     string                      `json:"digest"`
	Statistics v1alpha1.ScenarioStatistics `json:"statistics"`
}

// Plan is what the operator has planned for a run. It grows: nodes first, then T0 and all actions.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Spec with resolved references, for the run record.
	Spec v1alpha1.ExperimentSpec `json:"spec"`
	// Waveforms by the names that the spec refers to.
	Waveforms map[string]v1alpha1.WaveformSpec `json:"waveforms,omitempty"`
	// Scenario that moves the nodes, as at admission.
	Scenario *PlannedScenario `json:"scenario,omitempty"`
	Nodes    []PlannedNode    `json:"nodes"`
	// Passages between brokers.
	Passages []PlannedPassage `json:"passages,omitempty"`
	// Streams decide who should receive what, over brokers and passages. Records of version 1 have none.
	Streams *Streams `json:"streams,omitempty"`
	// ConfigMaps of files and variables of apps. Every node has these contents; later changes have no effect.
	ConfigMaps []PlannedConfigMap `json:"configMaps,omitempty"`
	// T0, when it is set.
	T0 *time.Time `json:"t0,omitempty"`
	// Armed are all starts and stops of the run, which agents have before T0. A newer version replaces actions that were not executed.
	Armed        []Action `json:"armed,omitempty"`
	ArmedVersion int64    `json:"armedVersion,omitempty"`
	// LiveChanges by people during the run, in order of time.
	LiveChanges []PlannedLiveChange `json:"liveChanges,omitempty"`
	// Captures of the run, also ended ones.
	Captures []PlannedCapture `json:"captures,omitempty"`
	// Phase of the experiment, for readers of the archive.
	Phase v1alpha1.ExperimentPhase `json:"phase"`
	// Message of the experiment's status.
	Message string `json:"message,omitempty"`
	// MeasureStartNanoseconds and MeasureEndNanoseconds after T0: the first start of a publisher and the end of the drain. Data
	// volumes are averaged between them. The end is set when the drain has ended.
	MeasureStartNanoseconds *int64 `json:"measureStartNanoseconds,omitempty"`
	MeasureEndNanoseconds   *int64 `json:"measureEndNanoseconds,omitempty"`
	// Finish makes every agent end before the phase changes: stop processes, ship everything, report done.
	Finish bool `json:"finish,omitempty"`
	// Environment is the rest of the run record: versions, hosts, image digests.
	Environment *Environment `json:"environment,omitempty"`
	// RerunOf is the run that this one repeats with the same spec, BasedOn the run whose spec was changed.
	RerunOf *Rerun `json:"rerunOf,omitempty"`
	BasedOn *Rerun `json:"basedOn,omitempty"`
	// Campaign that created the run, if any.
	Campaign *PlannedCampaign `json:"campaign,omitempty"`
	// Reference figures of the run's point of its campaign, if any.
	Reference *Reference `json:"reference,omitempty"`
}

// Reference is published or earlier figures of a point, beside which a comparison puts those of the runs.
type Reference struct {
	// Name of the ConfigMap that has them.
	Name    string            `json:"name"`
	Figures []ReferenceFigure `json:"figures"`
}

// ReferenceFigure is one of them.
type ReferenceFigure struct {
	// Group of the results, or network; empty: that of the headline, or the only one.
	Group string `json:"group,omitempty"`
	// Metric as the comparison's CSV names it.
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Note   string  `json:"note,omitempty"`
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
	// SpecDigest is equal for runs with the same spec apart from the seed. Absent in older records.
	SpecDigest string `json:"specDigest,omitempty"`
}

// Usage is a namespace's share of the archive.
type Usage struct {
	Namespace string `json:"namespace"`
	Runs      int    `json:"runs"`
	// Bytes of logs, captures, records and results.
	Bytes int64 `json:"bytes"`
	// QuotaBytes of its runs; 0 means no limit. At the limit no run begins, and the logs of others are cut off.
	QuotaBytes int64 `json:"quotaBytes"`
	// FreeBytes of the archive's volume that logs of all namespaces may still use. Absent if the volume does not say, and from older servers.
	FreeBytes *int64 `json:"freeBytes,omitempty"`
	// RetentionSeconds after which an ended run is deleted; 0 means never.
	RetentionSeconds float64 `json:"retentionSeconds"`
}

// RunRecord is run.json of the archive.
type RunRecord struct {
	SchemaVersion int `json:"schemaVersion"`
	// Revision grows with every change of the plan.
	Revision int64 `json:"revision"`
	Plan
}

// StateRecord is state.json of the archive: agents' reports and incidents.
type StateRecord struct {
	SchemaVersion int          `json:"schemaVersion"`
	Agents        []AgentState `json:"agents"`
	Incidents     []Incident   `json:"incidents"`
	// Refused are the logs that the archive refused, by path, with the reason.
	Refused map[string]string `json:"refused,omitempty"`
	// RefusedAt is the time of the first refusal.
	RefusedAt map[string]time.Time `json:"refusedAt,omitempty"`
	// Sealed is set when manifest.json is complete and logs no longer grow.
	Sealed bool `json:"sealed"`
	// Counters at the seal.
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

// AgentPhase is how far an agent has got.
type AgentPhase string

// The phases of an agent. Ready: connected, files written, nothing started. Done: every log is shipped, no process runs.
const (
	AgentReady   AgentPhase = "ready"
	AgentRunning AgentPhase = "running"
	AgentStopped AgentPhase = "stopped"
	AgentDone    AgentPhase = "done"
	AgentFailed  AgentPhase = "failed"
)

// AgentReport is what an agent reports on every change, and every 5 s as a heartbeat.
type AgentReport struct {
	App   string     `json:"app"`
	Phase AgentPhase `json:"phase"`
	// ArmedVersion of the actions that the agent has and will execute without a server.
	ArmedVersion int64 `json:"armedVersion,omitempty"`
	// ExecutedActions of them so far, in order of time.
	ExecutedActions int `json:"executedActions,omitempty"`
	// ArmedTooLate is the first start that arrived after its time; such starts are not executed.
	ArmedTooLate []string `json:"armedTooLate,omitempty"`
	// Restarts of instances that failed.
	Restarts int `json:"restarts"`
	// Message is why the agent failed: the app, its exit code, its last lines of output.
	Message string `json:"message,omitempty"`
	// Reason of the failure in one word, if there is one, such as ReasonKeyNotFound.
	Reason string `json:"reason,omitempty"`
	// WorstLatenessSeconds of the executed actions.
	WorstLatenessSeconds float64 `json:"worstLatenessSeconds"`
	// ArchivedUntilNanoseconds, Unix epoch: the archive has everything that was logged until then; 0 for not yet.
	ArchivedUntilNanoseconds int64 `json:"wholeUntilTs,omitempty"`
	// Gaps are times for which logs may be incomplete, at most MaxAgentGaps.
	Gaps []AgentGap `json:"gaps,omitempty"`
	// Clock of a node that has its own, such as a virtual machine; absent if it has the host's.
	Clock *AgentClock `json:"clock,omitempty"`
}

// ReasonKeyNotFound of a failed agent: a variable of its app comes from a key that the Secret lacks. For pods, the kubelet reports it.
const ReasonKeyNotFound = "KeyNotFound"

// AgentClock is the state of a node's own clock, which is measured against the server's and corrected periodically.
type AgentClock struct {
	// OffsetSeconds is the node's clock less the server's at the last measurement, before its correction. The error is at most
	// UncertaintySeconds: half the round trip.
	OffsetSeconds      float64 `json:"offsetSeconds"`
	UncertaintySeconds float64 `json:"uncertaintySeconds"`
	// WorstOffsetSeconds, without its sign, and WorstUncertaintySeconds of all measurements since the clock was set.
	WorstOffsetSeconds      float64 `json:"worstOffsetSeconds"`
	WorstUncertaintySeconds float64 `json:"worstUncertaintySeconds"`
	// SetSeconds is by how much the clock was stepped before the first app started.
	SetSeconds float64 `json:"setSeconds"`
	// Measurements since then, and the time of the last one, Unix epoch.
	Measurements        int   `json:"measurements"`
	MeasuredNanoseconds int64 `json:"measuredTs"`
}

// ClockReading has the server's clock, Unix epoch, when a request arrived and when its answer was sent, as in NTP (RFC 5905).
type ClockReading struct {
	ReceivedNanoseconds int64 `json:"receivedTs"`
	SentNanoseconds     int64 `json:"sentTs"`
}

// MaxAgentGaps of one agent; the last one extends to the end.
const MaxAgentGaps = 50

// AgentGap is a time in which a node could not write its logs.
type AgentGap struct {
	// FromNanoseconds and ToNanoseconds, Unix epoch; ToNanoseconds is 0 while it lasts.
	FromNanoseconds int64  `json:"fromTs"`
	ToNanoseconds   int64  `json:"toTs,omitempty"`
	Reason          string `json:"reason"`
}

// AgentState is an agent's last report.
type AgentState struct {
	Node string `json:"node"`
	AgentReport
	// ReportedAt is when the server received the report.
	ReportedAt time.Time `json:"reportedAt"`
}

// AgentPlan is the plan of one agent.
type AgentPlan struct {
	// Revision grows with every change.
	Revision int64      `json:"revision"`
	T0       *time.Time `json:"t0,omitempty"`
	// Actions for this app on this node, all of them, in order of time.
	Actions      []Action `json:"actions,omitempty"`
	ArmedVersion int64    `json:"armedVersion,omitempty"`
	// Finish makes the agent stop processes, ship everything, report done, and exit.
	Finish bool `json:"finish,omitempty"`
}

// LogPosition is the archived size of a log, bytes.
type LogPosition struct {
	Size int64 `json:"size"`
}

// Limits of a request with parts of logs.
const (
	// MaxLogParts of one request.
	MaxLogParts = 1024
	// MaxLogPartHeaderBytes of a LogPart's line with its end: file names have up to 255 bytes, six times that in JSON.
	MaxLogPartHeaderBytes = 4096
	// MaxCheckedBytes of a part, or of a piece of a radio log, that comes with a digest: it is in memory until it is checked.
	MaxCheckedBytes = 1 << 20
)

// LogPart is the line before the bytes of one part of a log.
type LogPart struct {
	// File is the log's name: 1 to 128 letters, digits, dots, hyphens and underscores.
	File string `json:"file"`
	// Offset of the part in the log, bytes.
	Offset int64 `json:"offset"`
	// Bytes of the part; 0 archives an empty log.
	Bytes int64 `json:"bytes"`
	// SHA256 of the part's bytes, in hexadecimal; such a part has at most MaxCheckedBytes. Without it, the part is not checked.
	SHA256 string `json:"sha256,omitempty"`
}

// LogAnswer is the result of one LogPart, independent of the others.
type LogAnswer struct {
	// Status is an HTTP status: 200, 400 if the file name is not allowed, 409 if the offset is not the archived size, 410 if the run is
	// sealed, 422 if the digest does not match, 507 if the run's quota or the volume is used up.
	Status int `json:"status"`
	// Size is the archived size of the log, bytes, with status 200 and 409.
	Size *int64 `json:"size,omitempty"`
	// Error is what was wrong with the part, and what would be right.
	Error string `json:"error,omitempty"`
}

// MaxCompared runs of a comparison: as many as a round of a campaign has at most.
const MaxCompared = 1000

// Problem is the body of every unsuccessful answer.
type Problem struct {
	// Error is what was wrong with the request, and what would be right.
	Error string `json:"error"`
	// Size is the archived size of a log, with status 409 of an append.
	Size *int64 `json:"size,omitempty"`
	// Quota is set with status 507 if a quota is used up, and the volume is not full.
	Quota bool `json:"quota,omitempty"`
}

// Incident is a failure of a node, or a change by a person.
type Incident struct {
	// What happened, in one word: NodeFailed, AppFailed, Evicted …
	What string `json:"what"`
	Node string `json:"node,omitempty"`
	// FromSeconds and ToSeconds after T0; ToSeconds is absent while it lasts.
	FromSeconds float64  `json:"fromSeconds"`
	ToSeconds   *float64 `json:"toSeconds,omitempty"`
	Reason      string   `json:"reason"`
}

// State is the server's state of a run.
type State struct {
	Plan      Plan         `json:"plan"`
	Agents    []AgentState `json:"agents"`
	Counters  Counters     `json:"counters"`
	Incidents []Incident   `json:"incidents,omitempty"`
	// Problem names records of the run that cannot be read.
	Problem string `json:"problem,omitempty"`
	// Sealed is set when the logs are as complete as they will be.
	Sealed bool `json:"sealed"`
	// Results is the analysis' results.json, when it exists.
	Results *Results `json:"results,omitempty"`
	// Live are figures so far, if requested and the run is under way.
	Live *LiveFigures `json:"live,omitempty"`
}

// Updates names runs that have changed: an agent's first report, an incident, a seal. Figures that always grow, such as counters,
// do not count.
type Updates struct {
	// Epoch is the start of the server to which Sequence belongs. With another one any run may have changed.
	Epoch string `json:"epoch"`
	// Sequence for the next request.
	Sequence int64 `json:"sequence"`
	// Runs by their UIDs, in no order.
	Runs []string `json:"runs"`
}

// LiveFigures of a run are those of its logs and radios so far; its results are final.
type LiveFigures struct {
	// Triggered and Sent messages of the whole run.
	Triggered int64 `json:"triggered"`
	Sent      int64 `json:"sent"`
	// Headline is the group of the deliveries below: radio, or all. They are counted as in the results.
	Headline string `json:"headline"`
	Offered  int64  `json:"offered"`
	Expected int64  `json:"expected"`
	Received int64  `json:"received"`
	// DelaySeconds of these deliveries so far, within 0.25 %; null if nothing was received.
	DelaySeconds *LiveDelays `json:"delaySeconds"`
	// QueueFrames wait or are being sent at the nodes' egress; DeepestFrames of them at the node DeepestQueue, if there are any.
	QueueFrames   int64  `json:"queueFrames"`
	DeepestQueue  string `json:"deepestQueue,omitempty"`
	DeepestFrames int64  `json:"deepestFrames,omitempty"`
	// LateReleases are frames that radios released more than 2 ms late, SlotsMissed TDMA slots that the emulation was too late for.
	// WorstLatenessSeconds of either.
	LateReleases         uint64  `json:"lateReleases"`
	SlotsMissed          uint64  `json:"slotsMissed"`
	WorstLatenessSeconds float64 `json:"worstLatenessSeconds"`
	// Networks that have carried frames, by name.
	Networks []LiveNetwork `json:"networks,omitempty"`
}

// LiveNetwork is what the radios of a network have carried so far. Sent is what nodes passed to their radios, Received what radios passed to
// their nodes, at each receiver.
type LiveNetwork struct {
	Name           string `json:"name"`
	FramesSent     uint64 `json:"framesSent"`
	BytesSent      uint64 `json:"bytesSent"`
	FramesReceived uint64 `json:"framesReceived"`
	BytesReceived  uint64 `json:"bytesReceived"`
}

// LiveDelays are quantiles of delays in seconds.
type LiveDelays struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// SealRequest requests the end of collection.
type SealRequest struct {
	// WaitSeconds is how long to wait for agents that have not shipped everything.
	WaitSeconds float64 `json:"waitSeconds"`
}

// ManifestFile is one archived file.
type ManifestFile struct {
	// Path below the run, such as logs/nor/bft/messages-1.jsonl.
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// Manifest lists the archived files of a run, and what is missing.
type Manifest struct {
	SchemaVersion int            `json:"schemaVersion"`
	UID           string         `json:"uid"`
	Files         []ManifestFile `json:"files"`
	// Gaps are what the archive lacks, as the seal found it. Results have more: what the contents of logs tell.
	Gaps []Gap `json:"gaps"`
}

// RunSummary is one line of the archive's list.
type RunSummary struct {
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	UID       string                   `json:"uid"`
	Phase     v1alpha1.ExperimentPhase `json:"phase"`
	T0        *time.Time               `json:"t0,omitempty"`
	// Campaign that created the run, if any.
	Campaign *PlannedCampaign `json:"campaign,omitempty"`
	// Problem names records of the run that cannot be read.
	Problem string `json:"problem,omitempty"`
	// KeptUp is the verdict of the results; absent without one.
	KeptUp *bool `json:"keptUp,omitempty"`
	// Sealed is set once the run's logs are complete and take no more.
	Sealed bool `json:"sealed,omitempty"`
	// Bytes of all files of the run in the archive.
	Bytes int64 `json:"bytes,omitempty"`
}

// AgentEvent is a line of an agent's own log, agent.jsonl.
type AgentEvent struct {
	TimeNanoseconds int64 `json:"ts"`
	// Event: ready, armed, started, stopped, exited (by itself), restarted, armedTooLate, failed, spoolFull, resumed, killed,
	// notHeld (started directly, not released from a hold), notArchived, clockStep, cpuThrottled, cpuPressure,
	// disconnected, connected, finished.
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

// RadioSample has the counters of one node on one network since the attachment.
type RadioSample struct {
	TimeNanoseconds int64  `json:"ts"`
	Network         string `json:"network"`
	Node            string `json:"node"`
	// Sent is what the node passed to its radio, Received what its radio passed to the node.
	FramesSent     uint64 `json:"framesSent"`
	BytesSent      uint64 `json:"bytesSent"`
	FramesReceived uint64 `json:"framesReceived"`
	BytesReceived  uint64 `json:"bytesReceived"`
	// FramesCorrupted were forwarded with a wrong bit.
	FramesCorrupted uint64 `json:"framesCorrupted,omitempty"`
	// LateInterference are receptions that would have failed had a transmission of another host or network been known in time.
	LateInterference uint64 `json:"lateInterference,omitempty"`
	// Drops by reason: loss, queueFull, noReceiver, silent, tapRing, routerSocket, inFlightAtEnd, radiodRestarted (also in
	// framesLost of RadioGaps) …
	Drops map[string]uint64 `json:"drops,omitempty"`
	// QueueDepth is the number of frames that wait or are being sent at the node's egress.
	QueueDepth int `json:"queueDepth"`
	// WorstLatenessSeconds of a frame's release since the last sample, and LateReleases over 2 ms in that time.
	WorstLatenessSeconds float64 `json:"worstLatenessSeconds"`
	LateReleases         uint64  `json:"lateReleases"`
	// LatenessCounts are the frames released since the node was attached, by how late they were, in the buckets of
	// radio.LatenessBounds, without empty ones at the end.
	LatenessCounts []uint64 `json:"latenessCounts,omitempty"`
	// SlotsUsed are the TDMA slots in which the radio sent. For SlotsMissed the emulation was too late while frames waited:
	// overload, not radio. WorstSlotLatenessSeconds of a slot's start since the last sample.
	SlotsUsed                uint64  `json:"slotsUsed,omitempty"`
	SlotsMissed              uint64  `json:"slotsMissed,omitempty"`
	WorstSlotLatenessSeconds float64 `json:"worstSlotLatenessSeconds,omitempty"`
	// Routing… is the share of the platform's routing protocol: packets, and bytes of their frames. Absent if the node does not route
	// by olsrv2 or olsrv1.
	RoutingPacketsSent     *uint64 `json:"routingPacketsSent,omitempty"`
	RoutingBytesSent       *uint64 `json:"routingBytesSent,omitempty"`
	RoutingPacketsReceived *uint64 `json:"routingPacketsReceived,omitempty"`
	RoutingBytesReceived   *uint64 `json:"routingBytesReceived,omitempty"`
}

// The lines of a host's radio log, radio/HOST.jsonl, are RadioSamples and lines with a field of their own: RadioHeader (host),
// RadioGap (gap), CaptureSample (capture), RadioPositions (positions), RadioLinks (receiver), RadioSteps (steps),
// RadioRoutes (routing), RadioPeer (peer), RadioLateTime (lateSeconds), RadioMissedSlots (slotsMissedFrom),
// RadioLateChange (changeDueTs), RadioStealTime (stolenSeconds) and RadioLoad (busySeconds).

// PositionsLog is the log with a node's NodePosition lines, among those of one of its apps.
const PositionsLog = "positions.jsonl"

// PlatformLog is the log with the NodePosition lines of the platform that an app's instance reports, by the instance's number from 1.
func PlatformLog(instance int) string { return "positions-" + strconv.Itoa(instance) + ".jsonl" }

// NodePosition is where the scenario has a platform from a time on, or the place of a fixed node.
type NodePosition struct {
	TimeNanoseconds int64 `json:"ts"`
	// Position is latitude and longitude in degrees, altitude in metres (WGS 84).
	Position [3]float64 `json:"position"`
}

// RadioPositions are where a network's nodes on the host are, as the radios use them: about once a second those that have moved.
type RadioPositions struct {
	TimeNanoseconds int64  `json:"ts"`
	Network         string `json:"network"`
	// Positions by node: latitude and longitude in degrees, altitude in metres (WGS 84), rounded to 1e-6 degrees and 0.1 m.
	Positions map[string][3]float64 `json:"positions"`
}

// MaxRadioRoutes is about how many routes of one run are logged each second by a host. With more changes nodes alternate; a
// later line has all changes since the node's earlier one.
const MaxRadioRoutes = 4096

// RadioRoutes are a node's routes that changed since they were last written, about once a second.
type RadioRoutes struct {
	TimeNanoseconds int64  `json:"ts"`
	Node            string `json:"node"`
	// Routing is the protocol that found them.
	Routing string `json:"routing"`
	// Topology of the routing domain to which they belong; absent for the first.
	Topology string `json:"topology,omitempty"`
	// Complete is set if these are all routes, whatever was written before.
	Complete bool         `json:"whole,omitempty"`
	Routes   []RadioRoute `json:"routes,omitempty"`
	// Gone are the destinations without a route.
	Gone []string `json:"gone,omitempty"`
}

// RadioRoute of a node.
type RadioRoute struct {
	// To is the destination in CIDR form, Via the next node's address; absent if the destination is a neighbour.
	To  string `json:"to"`
	Via string `json:"via,omitempty"`
	// Network of the route.
	Network string `json:"network"`
	Hops    int    `json:"hops"`
	Metric  uint32 `json:"metric"`
}

// MaxRadioLinks of one network are logged each second by a host. With more, receivers alternate; their counters go on, so that
// nothing is lost.
const MaxRadioLinks = 512

// RadioLinks are the receptions at one node's radio: about once a second the links on which something was sent.
type RadioLinks struct {
	TimeNanoseconds int64  `json:"ts"`
	Network         string `json:"network"`
	// Receiver is the receiving node.
	Receiver string      `json:"receiver"`
	From     []RadioLink `json:"from"`
}

// RadioLink counts receptions of one radio's transmissions. Figures in dB are rounded to 0.01.
type RadioLink struct {
	// Node that sends.
	Node string `json:"node"`
	// SINRDecibels at the receiver, of the last transmission above its sensitivity; PathlossDecibels between the antennas.
	// Unknown values are absent.
	SINRDecibels     *float64 `json:"sinrDB,omitempty"`
	PathlossDecibels *float64 `json:"pathlossDB,omitempty"`
	// Received transmissions since the attachment, and Missed ones by reason: belowSensitivity, lowSINR, interfered,
	// halfDuplex, notListening …
	Received uint64            `json:"heard"`
	Missed   map[string]uint64 `json:"missed,omitempty"`
}

// RadioSteps is how well a network's radios followed the scenario: about once a second while it has steps.
type RadioSteps struct {
	TimeNanoseconds int64  `json:"ts"`
	Network         string `json:"network"`
	// Steps of positions, pathloss or jammers prepared so far, and LateSteps more than 2 ms after their times.
	Steps     uint64 `json:"steps"`
	LateSteps uint64 `json:"lateSteps,omitempty"`
	// WorstStepLatenessSeconds since the last sample.
	WorstStepLatenessSeconds float64 `json:"worstStepLatenessSeconds,omitempty"`
}

// RadioHeader precedes samples: where and with which settings they were measured.
type RadioHeader struct {
	TimeNanoseconds int64 `json:"ts"`
	// Host is the Kubernetes node's name.
	Host   string `json:"host"`
	Kernel string `json:"kernel"`
	// Nodes with these settings.
	Nodes []string `json:"nodes,omitempty"`
	// Settings of the nodes' namespaces, by name: kernel settings as sysctl(8) writes them, and INTERFACE.mtu
	// (bytes) and INTERFACE.txqueuelen (frames).
	Settings map[string]string `json:"settings,omitempty"`
}

// RadioGap is a time in which a host's radios did not follow the model.
type RadioGap struct {
	// TimeNanoseconds is when this line was written.
	TimeNanoseconds int64 `json:"ts"`
	// Gap is its kind: radiodRestarted (frames in flight were lost, and none was carried), attachmentLost, hostUnreachable (no
	// frames between its nodes and those of another host), or capture (captures lack the frames of that time).
	Gap string `json:"gap"`
	// Node that the gap is for; empty for all of the host's nodes of the run.
	Node string `json:"node,omitempty"`
	// FromNanoseconds and ToNanoseconds by the real-time clock; ToNanoseconds is 0 while the gap lasts. At its end there is
	// another gap of the same kind, node and FromNanoseconds.
	FromNanoseconds int64  `json:"fromTs"`
	ToNanoseconds   int64  `json:"toTs,omitempty"`
	Reason          string `json:"reason"`
	// FramesLost in the gap, if they could be counted: frames in flight, or without room in their nodes' interfaces.
	FramesLost uint64 `json:"framesLost,omitempty"`
}

// CaptureSample is the state of a capture at one node's radio, about once a second while it changes, and at its end; counters
// since the capture began.
type CaptureSample struct {
	TimeNanoseconds int64  `json:"ts"`
	Capture         string `json:"capture"`
	Network         string `json:"network"`
	Node            string `json:"node"`
	// Frames and Bytes written that matched the filter.
	Frames uint64 `json:"frames"`
	Bytes  uint64 `json:"bytes"`
	// Dropped frames that could not be written in time or without room, by reason: ringFull, limit, spoolFull, quota …
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	// Ended is why the capture has ended: limit, stopped or detached; empty while it continues.
	Ended string `json:"ended,omitempty"`
}
