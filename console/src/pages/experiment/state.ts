import { secondsOf } from "../../components/time";
import type { Experiment } from "../../types";

/** stage is the phase as people say it, as in `vignette status`. */
export function stage(e: Experiment): string {
  const status = e.status ?? {};
  if (!status.phase) return "Submitted";
  if (status.phase !== "Running") return status.phase;
  if (status.step === "stop" && e.spec.stop) return "Stopping";
  return status.step === "drain" ? "Draining" : status.phase;
}

/** isOver reports whether the experiment has succeeded or failed. */
export function isOver(e: Experiment): boolean {
  return e.status?.phase === "Succeeded" || e.status?.phase === "Failed";
}

/** isWaiting reports whether the experiment waits for room. */
export function isWaiting(e: Experiment): boolean {
  return !e.status?.phase || e.status.phase === "Queued";
}

/** neverRan reports whether an experiment ended before it had room: the archive does not know it. */
export function neverRan(e: Experiment): boolean {
  return e.status?.phase === "Failed" && !e.status.startTime;
}

/** isUp reports whether nodes can be entered, captured and changed. */
export function isUp(e: Experiment): boolean {
  return e.status?.phase === "Running";
}

/** How far a run has got, in seconds after T0. */
export interface Course {
  t0: number;
  /** elapsed until now, or until the end of the run. */
  elapsed: number;
  /** duration of the timeline; undefined for a live cluster. */
  duration: number | undefined;
  /** end of the run, in Unix milliseconds: the expected one while it runs; undefined for a live cluster. */
  end: number | undefined;
}

/** courseOf a run at a time in Unix milliseconds; undefined before T0 is set. */
export function courseOf(e: Experiment, now: number): Course | undefined {
  if (!e.status?.t0) return undefined;
  const t0 = Date.parse(e.status.t0);
  const seconds = e.spec.duration === undefined ? NaN : secondsOf(e.spec.duration);
  const duration = Number.isNaN(seconds) ? undefined : seconds;
  const over = e.status.completionTime ? Date.parse(e.status.completionTime) : undefined;
  return {
    t0,
    elapsed: ((over ?? now) - t0) / 1000,
    duration,
    end: over ?? (duration === undefined ? undefined : t0 + 1000 * duration),
  };
}

/** progressOf a run in percent; undefined if it is not known. */
export function progressOf(e: Experiment): number | undefined {
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(e.status?.progress ?? "")?.[1];
  return percent === undefined ? undefined : Math.min(100, Number(percent));
}

/** whyWaiting is what the condition Admitted or Accepted says of an experiment that waits. */
export function whyWaiting(e: Experiment): string {
  const refused = e.status?.conditions?.filter((c) => c.status !== "True" && (c.type === "Accepted" || c.type === "Admitted"));
  return refused?.[0]?.message ?? e.status?.message ?? "";
}

const labels = "vignette.dev/";

/** Where an experiment comes from. */
export interface Origin {
  /** campaign that created it, with the round and the point. */
  campaign: { name: string; round: string; point: string } | undefined;
  /** run that it repeats, or whose spec was changed. */
  earlier: { relation: "Rerun of" | "Based on"; namespace: string; name: string; uid: string } | undefined;
  /** program with which it was created, as Kubernetes recorded it. */
  createdWith: string | undefined;
}

/** originOf an experiment, from its labels and annotations. */
export function originOf(e: Experiment): Origin {
  const label = e.metadata.labels ?? {};
  const campaign = label[`${labels}campaign`];
  const rerun = label[`${labels}rerun-of`];
  const based = label[`${labels}based-on`];
  const earlier = rerun ?? based;
  const described = describedRun(e.metadata.annotations?.[`${labels}rerun`]);
  return {
    campaign: campaign === undefined ? undefined : { name: campaign, round: label[`${labels}campaign-round`] ?? "", point: label[`${labels}campaign-point`] ?? "" },
    earlier:
      earlier === undefined
        ? undefined
        : { relation: rerun === undefined ? "Based on" : "Rerun of", namespace: described.namespace ?? e.metadata.namespace ?? "", name: described.name ?? "", uid: earlier },
    createdWith: creatorOf(e),
  };
}

function describedRun(annotation: string | undefined): { namespace?: string; name?: string } {
  try {
    const value: unknown = JSON.parse(annotation ?? "{}");
    if (typeof value !== "object" || value === null) return {};
    const { namespace, name } = value as Record<string, unknown>;
    return { ...(typeof namespace === "string" && { namespace }), ...(typeof name === "string" && { name }) };
  } catch {
    return {};
  }
}

interface ManagedFields {
  manager?: string;
  subresource?: string;
  time?: string;
  fieldsV1?: { "f:spec"?: Record<string, unknown> };
}

// What a person knows by another name than that of its field manager.
const programs: readonly [RegExp, string][] = [
  [/^vignette-cli$/, "vignette"],
  [/^vignette-console$/, "the console"],
  [/^kubectl-/, "kubectl"],
];

// The nodes never change, so that who has written them has created the experiment. The operator adds a finalizer within the same second.
function creatorOf(e: Experiment): string | undefined {
  const { managedFields = [] } = e.metadata as { managedFields?: ManagedFields[] };
  const writers = managedFields.filter((m) => !m.subresource && m.fieldsV1?.["f:spec"]?.["f:nodes"] !== undefined);
  writers.sort((a, b) => (a.time ?? "").localeCompare(b.time ?? ""));
  const manager = writers[0]?.manager;
  return programs.find(([name]) => name.test(manager ?? ""))?.[1] ?? manager;
}
