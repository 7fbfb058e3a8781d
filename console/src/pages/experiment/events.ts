import type { ArchivedEvent } from "../../archive/types";
import type { KubernetesEvent } from "../../kubernetes/kinds";

/** An event of a run, from the archive or the cluster. */
export interface RunEvent {
  uid: string;
  milliseconds: number;
  isWarning: boolean;
  reason: string;
  /** object that it is about, such as Pod e-hq. */
  object: string;
  node: string;
  message: string;
  count: number;
}

// A page shows lines again whenever some were added. Each is parsed once.
const read = new WeakMap<object, RunEvent | undefined>();

/** archivedEvents reads lines of events.jsonl. Of a repeated event the newest line is kept; lines that are none are left out. */
export function archivedEvents(lines: readonly { text: string }[]): RunEvent[] {
  const events = new Map<string, RunEvent>();
  for (const line of lines) {
    if (!read.has(line)) read.set(line, parsed(line.text));
    const event = read.get(line);
    if (!event) continue;
    events.delete(event.uid);
    events.set(event.uid, event);
  }
  return [...events.values()].sort((a, b) => a.milliseconds - b.milliseconds);
}

function parsed(line: string): RunEvent | undefined {
  try {
    const event = JSON.parse(line) as Partial<ArchivedEvent> | null;
    if (typeof event?.ts !== "number" || typeof event.uid !== "string") return undefined;
    return {
      uid: event.uid,
      milliseconds: event.ts / 1e6,
      isWarning: event.type === "Warning",
      reason: event.reason ?? "",
      object: `${event.object?.kind ?? ""} ${event.object?.name ?? ""}`.trim(),
      node: event.node ?? "",
      message: event.message ?? "",
      count: event.count ?? 1,
    };
  } catch {
    return undefined;
  }
}

/** clusterEvents are those of an experiment that Kubernetes still has. */
export function clusterEvents(events: readonly KubernetesEvent[]): RunEvent[] {
  return events
    .map((event) => ({
      uid: event.metadata.uid ?? event.metadata.name,
      milliseconds: Date.parse(event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? event.metadata.creationTimestamp ?? "") || 0,
      isWarning: event.type === "Warning",
      reason: event.reason ?? "",
      object: `${event.involvedObject.kind ?? ""} ${event.involvedObject.name ?? ""}`.trim(),
      node: "",
      message: event.message ?? "",
      count: event.count ?? 1,
    }))
    .sort((a, b) => a.milliseconds - b.milliseconds);
}

/** textOf an event in one line. */
export function textOf(event: RunEvent): string {
  const times = event.count > 1 ? ` (${event.count} times)` : "";
  // Names of pods and workflows begin with the experiment's, and are in the details.
  return `${event.reason}${times}  ${event.node || (event.object.split(" ")[0] ?? "")}: ${event.message}`;
}
