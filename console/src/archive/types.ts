import type { components } from "../types/server.gen";

// Answers of the results server, by the names that internal/runapi gives them.
type Schemas = components["schemas"];

export type Action = Schemas["Action"];
export type AgentState = Schemas["AgentState"];
export type ArchivedEvent = Schemas["KubernetesEvent"];
export type Counters = Schemas["Counters"];
export type Incident = Schemas["Incident"];
export type LiveFigures = Schemas["LiveFigures"];
export type Manifest = Schemas["Manifest"];
export type Plan = Schemas["Plan"];
export type PlannedCapture = Schemas["PlannedCapture"];
export type RadioChange = Schemas["RadioChange"];
export type RunState = Schemas["State"];
export type Verdict = Schemas["Verdict"];
