import type { Experiment, LiveChange } from "../types";

// Answers of the results server, as internal/runapi has them.

export type RadioChange = LiveChange["spec"]["changes"][number];

/** An action that agents carry out at T0 + atNanoseconds. */
export interface Action {
  id: string;
  atNanoseconds: number;
  verb: "start" | "stop";
  targets: { node: string; app: string }[] | null;
}

export interface PlannedApp {
  name: string;
  /** mosquitto, traffic, mgen, image … */
  kind: string;
  instances: string[] | null;
  publishes?: boolean;
  /** Brokers of the instances, as node/app; the name of a network where they broadcast. */
  brokers?: string[];
}

/** A way of messages from one broker to another, both as node/app. */
export interface PlannedPassage {
  from: string;
  to: string;
  filters: string[] | null;
}

export interface PlannedNode {
  name: string;
  group: string;
  nem: number;
  podUID: string;
  pod: string;
  openManagement?: boolean;
  /** Addresses by the name of the network. */
  addresses?: Record<string, string>;
  apps: PlannedApp[] | null;
}

export interface PlannedLiveChange {
  name: string;
  atNanoseconds: number;
  changes: RadioChange[];
}

export interface PlannedCapture {
  /** run, or the name of the Capture object. */
  name: string;
  network: string;
  nodes: string[] | null;
  filter?: string;
  limitBytes?: number;
  ended?: boolean;
}

export interface Rerun {
  namespace?: string;
  name?: string;
  uid: string;
}

/** What the operator has planned for a run. */
export interface Plan {
  namespace: string;
  name: string;
  uid: string;
  spec: Experiment["spec"];
  nodes: PlannedNode[] | null;
  passages?: PlannedPassage[];
  t0?: string;
  armed?: Action[];
  liveChanges?: PlannedLiveChange[];
  captures?: PlannedCapture[];
  phase: string;
  message?: string;
  environment?: { hosts?: { name: string; nodes?: string[] }[] };
  rerunOf?: Rerun;
  basedOn?: Rerun;
}

/** The last report of the agent of an app on a node. */
export interface AgentState {
  node: string;
  app: string;
  phase: "ready" | "running" | "stopped" | "done" | "failed";
  restarts: number;
  message?: string;
  reason?: string;
  worstLatenessSeconds: number;
  reportedAt: string;
}

export interface Incident {
  what: string;
  node?: string;
  fromSeconds: number;
  toSeconds?: number;
  reason: string;
}

export interface Counters {
  triggered: number;
  sent: number;
  received: number;
  processed: number;
}

/** Figures of a run so far. */
export interface LiveFigures {
  triggered: number;
  sent: number;
  headline: string;
  offered: number;
  expected: number;
  received: number;
  delaySeconds: { min: number; median: number; p95: number; max: number } | null;
  queueFrames: number;
  deepestQueue?: string;
  deepestFrames?: number;
  lateReleases: number;
  slotsMissed: number;
  worstLatenessSeconds: number;
}

export interface Verdict {
  keptUp: boolean;
  exceeded?: string[];
  networks?: { name: string; frames: number; late: number; worstSeconds: number; lost: number; slots?: number; missed?: number }[];
  context?: string[];
}

/** State of a run. */
export interface RunState {
  plan: Plan;
  agents: AgentState[] | null;
  counters: Counters;
  incidents?: Incident[];
  sealed: boolean;
  results?: { verdict?: Verdict };
  live?: LiveFigures;
}

export interface Manifest {
  files: { path: string; bytes: number }[] | null;
}

/** A line of events.jsonl. */
export interface ArchivedEvent {
  ts: number;
  uid: string;
  type: string;
  reason: string;
  object: { kind: string; name: string };
  node?: string;
  host?: string;
  message: string;
  count: number;
}
