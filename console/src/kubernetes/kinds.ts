import type { Campaign, Capture, Experiment, LiveChange, NodeTemplate, ObjectMeta, Scenario, Waveform } from "../types";

/** An object of Kubernetes. */
export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** A kind of objects, and where the API server has them. */
export interface Kind<T extends KubernetesObject> {
  /** group of the API; empty for the core group. */
  group: string;
  version: string;
  plural: string;
  kind: string;
  namespaced: boolean;
  /** Never set: it ties the type of the objects to the kind. */
  readonly example?: T;
}

function ours<T extends KubernetesObject>(kind: string, plural: string, namespaced = true): Kind<T> {
  return { group: "vignette.dev", version: "v1alpha1", plural, kind, namespaced };
}

export const experiments = ours<Experiment>("Experiment", "experiments");
export const campaigns = ours<Campaign>("Campaign", "campaigns");
export const scenarios = ours<Scenario>("Scenario", "scenarios");
export const liveChanges = ours<LiveChange>("LiveChange", "livechanges");
export const captures = ours<Capture>("Capture", "captures");
export const waveforms = ours<Waveform>("Waveform", "waveforms");
export const nodeTemplates = ours<NodeTemplate>("NodeTemplate", "nodetemplates");

/** A pod, as far as the console reads it. */
export interface Pod extends KubernetesObject {
  spec?: { nodeName?: string; containers?: { name: string }[] };
  status?: {
    phase?: string;
    containerStatuses?: { name: string; ready: boolean; restartCount: number }[];
  };
}

/** An event of Kubernetes (core v1). */
export interface KubernetesEvent extends KubernetesObject {
  involvedObject: { kind?: string; name?: string; namespace?: string; uid?: string };
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  eventTime?: string | null;
}

export interface Namespace extends KubernetesObject {
  status?: { phase?: string };
}

function core<T extends KubernetesObject>(kind: string, plural: string, namespaced = true): Kind<T> {
  return { group: "", version: "v1", plural, kind, namespaced };
}

export const pods = core<Pod>("Pod", "pods");
export const events = core<KubernetesEvent>("Event", "events");
export const namespaces = core<Namespace>("Namespace", "namespaces", false);
