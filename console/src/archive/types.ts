import type { components } from "../types/server.gen";

// Answers of the results server, by the names that internal/runapi gives them.
type Schemas = components["schemas"];

export type Action = Schemas["Action"];
export type AgentState = Schemas["AgentState"];
export type ArchivedEvent = Schemas["KubernetesEvent"];
export type Bounds = Schemas["Bounds"];
export type BurstResult = Schemas["BurstResult"];
export type ClockResult = Schemas["ClockResult"];
export type Confidence = Schemas["Confidence"];
export type Counters = Schemas["Counters"];
export type Environment = Schemas["Environment"];
export type Gap = Schemas["Gap"];
export type GroupResult = Schemas["GroupResult"];
export type Host = Schemas["Host"];
export type Image = Schemas["Image"];
export type Incident = Schemas["Incident"];
export type Interval = Schemas["Interval"];
export type Late = Schemas["Late"];
export type LiveFigures = Schemas["LiveFigures"];
export type LiveNetwork = Schemas["LiveNetwork"];
export type Manifest = Schemas["Manifest"];
export type ManifestFile = Schemas["ManifestFile"];
export type Messages = Schemas["Messages"];
export type NetworkResult = Schemas["NetworkResult"];
export type PairResult = Schemas["PairResult"];
export type PictureGroup = Schemas["PictureGroup"];
export type Plan = Schemas["Plan"];
export type PlannedCapture = Schemas["PlannedCapture"];
export type PublisherResult = Schemas["PublisherResult"];
export type Quantiles = Schemas["Quantiles"];
export type RadioChange = Schemas["RadioChange"];
export type Requests = Schemas["RequestResults"];
export type Rerun = Schemas["Rerun"];
export type Results = Schemas["Results"];
export type RunState = Schemas["State"];
export type RunSummary = Schemas["RunSummary"];
export type Verdict = Schemas["Verdict"];

/** Figures of a group of deliveries, of a publisher, or of a pair of node groups. */
export type Figures = Pick<GroupResult, "messages" | "delaySeconds" | "requests"> & { confidence?: Confidence | null };
