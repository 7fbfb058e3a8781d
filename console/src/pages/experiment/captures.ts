import type { Manifest, PlannedCapture } from "../../archive/types";
import type { Capture, Experiment } from "../../types";

/** CaptureRow is a capture of a run. */
export interface CaptureRow {
  /** name: run for the one of the spec, else the Capture object's. */
  name: string;
  network: string;
  nodes: string;
  filter: string;
  state: string;
  /** object to delete to end the capture, while there is one. */
  object: Capture | undefined;
  files: CaptureFile[];
}

export interface CaptureFile {
  path: string;
  node: string;
  bytes: number;
}

const collator = new Intl.Collator("en", { numeric: true });

/** capturesOf a run: those of its plan, of the objects of the cluster, and of the files in the archive. */
export function capturesOf(planned: PlannedCapture[], objects: Capture[], files: NonNullable<Manifest["files"]>, stopped: boolean): CaptureRow[] {
  const rows = new Map<string, CaptureRow>();
  const row = (name: string, network: string) => {
    const key = `${name}/${network}`;
    const found = rows.get(key) ?? { name, network, nodes: "", filter: "", state: "ended", object: undefined, files: [] };
    rows.set(key, found);
    return found;
  };
  for (const { name, network, nodes, filter, ended } of planned) {
    Object.assign(row(name, network), { nodes: (nodes ?? []).join(", "), filter: filter ?? "", state: ended || stopped ? "ended" : "capturing" });
  }
  for (const object of objects) {
    const one = row(object.metadata.name, object.spec.network);
    one.nodes ||= object.spec.nodes?.join(", ") ?? "all of the network";
    one.filter ||= object.spec.filter ?? "";
    one.object = object;
    one.state = stateOf(object);
  }
  for (const { path, bytes } of files) {
    const [folder, name, network, file] = path.split("/");
    if (folder !== "captures" || name === undefined || network === undefined || file === undefined) continue;
    row(name, network).files.push({ path, node: file.replace(/\.pcapng$/, ""), bytes });
  }
  for (const { files: own } of rows.values()) own.sort((a, b) => collator.compare(a.node, b.node));
  return [...rows.values()].sort((a, b) => collator.compare(a.name, b.name) || collator.compare(a.network, b.network));
}

function stateOf({ status }: Capture): string {
  if (status?.endedAt) return "ended";
  const capturing = status?.conditions?.find((condition) => condition.type === "Capturing");
  if (!capturing) return "not begun";
  return capturing.status === "True" ? "capturing" : `not capturing: ${capturing.message}`;
}

/** What the form of a new capture has. */
export interface Wanted {
  network: string;
  /** node, or group of nodes; all of the network if empty. */
  node: string;
  filter: string;
  duration: string;
  limit: string;
}

/** captureObject that was wanted. Kubernetes and the operator check it. */
export function captureObject(e: Experiment, { network, node, filter, duration, limit }: Wanted): Capture {
  return {
    metadata: { name: "", generateName: `${e.metadata.name}-` },
    spec: { experiment: e.metadata.name, network, ...(node && { nodes: [node] }), ...(filter.trim() && { filter: filter.trim() }), ...(duration.trim() && { duration: duration.trim() }), ...(limit.trim() && { limit: limit.trim() }) },
  };
}
