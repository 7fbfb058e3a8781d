import { queryOptions } from "@tanstack/react-query";
import { base, askJSON, Refusal } from "../kubernetes/client";
import { archivePath, fromArchive } from "./client";
import { askAgainAfter } from "./polling";

// What the results server says of runs, as in internal/runapi. What a page does not read is left out.

export interface Interval {
  low: number;
  high: number;
}

/** Quantiles of a time in seconds. */
export interface Quantiles {
  min: number;
  p25: number;
  median: number;
  mean?: number;
  p75: number;
  p95?: number;
  max: number;
}

export interface Messages {
  triggered?: number;
  sent: number;
  offered?: number;
  deliveredPercent?: number;
  expected: number;
  received: number;
  lost: number;
  lostPercent: number;
  duplicates: number;
  neverSent?: number;
}

export interface Confidence {
  medianSeconds?: Interval | null;
  meanSeconds?: Interval | null;
  lostPercent?: Interval | null;
  deliveredPercent?: Interval | null;
}

export interface Requests {
  triggered: number;
  sent: number;
  receipts: number;
  receiptPercent: number;
  failed: Record<string, number> | null;
  outstanding: number;
  retransmissions: number;
  responseSeconds: Quantiles | null;
  confidence?: { receiptPercent?: Interval | null; medianSeconds?: Interval | null; meanSeconds?: Interval | null } | null;
}

export interface Bounds {
  delaySeconds: Record<string, Interval> | null;
  deliveredPercent: Interval | null;
  marked: number;
  markedLost: number;
}

/** Figures of a group of deliveries, of a publisher, or of a pair of node groups. */
export interface Figures {
  messages: Messages;
  delaySeconds: Quantiles | null;
  confidence?: Confidence | null;
  requests?: Requests;
}

export interface GroupResult extends Figures {
  name: string;
  bounds?: Bounds;
}

export interface PublisherResult extends Figures {
  name: string;
  node: string;
}

export interface PairResult extends Figures {
  from: string;
  to: string;
}

export interface NetworkResult {
  name: string;
  bytesPerSecond?: number;
  byLayer?: Record<string, number>;
  routingBytesPerSecond?: number;
  tcp?: { retransmissions: number; spurious: number; duplicateAcks: number };
  captured?: { nodes: string[]; fromSeconds: number; toSeconds: number };
}

export interface Gap {
  what: string;
  node?: string;
  fromSeconds?: number;
  toSeconds?: number;
  reason: string;
}

export interface Late {
  node: string;
  fromSeconds: number;
  toSeconds: number;
  what: string;
  worstSeconds: number;
}

export interface Verdict {
  keptUp: boolean;
  exceeded?: string[];
  late: Late[] | null;
  context?: string[];
  networks?: { name: string; frames: number; late: number; worstSeconds: number; lost: number; slots?: number; missed?: number }[];
  actions?: { actions: number; late: number; worstSeconds: number };
}

export interface HostLoad {
  name: string;
  cpus: number;
  busyPercent: number;
  maxBusyPercent: number;
  maxLoadAverage: number;
  stolenSeconds: number;
}

/** Results is results/results.json of a run. */
export interface Results {
  schemaVersion: number;
  experiment: string;
  namespace: string;
  uid: string;
  phase: string;
  startTime?: string;
  durationSeconds: number;
  verdict?: Verdict;
  headline?: string;
  warnings?: Gap[];
  messages: Messages;
  delaySeconds: Quantiles | null;
  requests?: Requests;
  groups: GroupResult[] | null;
  publishers: PublisherResult[] | null;
  pairs?: PairResult[];
  networks: NetworkResult[] | null;
  gaps: Gap[] | null;
  notes?: Gap[];
  hosts?: HostLoad[];
  rerunOf?: string;
  basedOn?: string;
}

export interface CampaignOfRun {
  name: string;
  uid: string;
  round: number;
  point: string;
  levels?: Record<string, string>;
}

export interface Host {
  name: string;
  nodes?: string[];
  kernel?: string;
  os?: string;
  architecture?: string;
  cpus?: number;
  cpuModel?: string;
  memoryBytes?: number;
  tcpCongestionControl?: string;
  kubelet?: string;
  containerRuntime?: string;
}

export interface Image {
  node?: string;
  host?: string;
  container: string;
  image: string;
  id: string;
}

export interface Environment {
  platform?: { version?: string; chart?: string; operator?: string };
  kubernetes?: string;
  hosts?: Host[];
  images?: Image[];
}

export interface Rerun {
  namespace?: string;
  name?: string;
  uid: string;
  differences?: { what: string; before: string; now: string }[];
  changes?: { path: string; from: string; to: string }[];
  moreChanges?: number;
}

/** Plan of a run, which is its record. */
export interface Plan {
  namespace: string;
  name: string;
  uid: string;
  spec: Record<string, unknown>;
  waveforms?: Record<string, unknown>;
  scenario?: { name: string; digest: string };
  nodes: { name: string; group: string; nem: number }[] | null;
  t0?: string;
  phase: string;
  message?: string;
  liveChanges?: { name: string; atNanoseconds: number; changes: unknown[] }[];
  environment?: Environment;
  rerunOf?: Rerun;
  basedOn?: Rerun;
  campaign?: CampaignOfRun;
}

export interface Incident {
  what: string;
  node?: string;
  fromSeconds: number;
  toSeconds?: number;
  reason: string;
}

/** RunState is what the results server knows of a run. */
export interface RunState {
  plan: Plan;
  incidents?: Incident[];
  sealed: boolean;
  results?: Results;
}

export interface RunSummary {
  namespace: string;
  name: string;
  uid: string;
  phase: string;
  t0?: string;
  campaign?: CampaignOfRun;
  problem?: string;
}

export interface ManifestFile {
  path: string;
  bytes: number;
  sha256?: string;
}

export interface Manifest {
  files: ManifestFile[] | null;
  gaps: Gap[] | null;
}

/** newestResults is the version of results.json that the console reads; it reads all earlier ones too. */
export const newestResults = 2;

const whileItRuns = 5_000;

async function readState(namespace: string, uid: string, signal: AbortSignal): Promise<RunState> {
  const state = await fromArchive<RunState>(namespace, `/runs/${encodeURIComponent(uid)}`, signal);
  const version = state.results?.schemaVersion ?? 0;
  if (version > newestResults) {
    throw new Refusal(0, `The results of this run have the schema version ${version}, and this console reads up to ${newestResults}. A newer console reads them.`);
  }
  return state;
}

/** runQuery reads a run; again from time to time until it has results. */
export function runQuery(namespace: string, uid: string) {
  return queryOptions({
    queryKey: ["run", namespace, uid],
    queryFn: ({ signal }) => readState(namespace, uid, signal),
    staleTime: whileItRuns,
    refetchInterval: ({ state: { data, error } }) => readAgainAfter(data, error),
  });
}

const afterError = 15_000;

/** readAgainAfter so many milliseconds; false if the run changes no more. An error does not end the questions. */
export function readAgainAfter(state: RunState | undefined, error: Error | null): number | false {
  if (error) return askAgainAfter(error, afterError);
  return state && isOver(state) ? false : whileItRuns;
}

/** isOver reports whether a run will change no more: it has results, or ended without any. */
export function isOver({ plan, results }: RunState): boolean {
  return plan.phase === "Failed" || (plan.phase === "Succeeded" && results !== undefined);
}

/** filesQuery lists the files of a run. While it goes on, the list is another one, so that all are listed once more at its end. */
export function filesQuery(namespace: string, uid: string, ended = true) {
  return queryOptions({
    queryKey: ["run", namespace, uid, "files", ended ? "at the end" : "so far"],
    queryFn: ({ signal }) => fromArchive<Manifest>(namespace, `/runs/${encodeURIComponent(uid)}/files`, signal),
  });
}

/** runsQuery lists archived runs, newest first: of a namespace, or of all if the user may read all. */
export function runsQuery(namespace: string | undefined) {
  return queryOptions({
    queryKey: ["runs", namespace ?? null],
    queryFn: ({ signal }) => askJSON<RunSummary[] | null>(listPath(namespace), { signal }).then((runs) => runs ?? []),
    staleTime: 15_000,
  });
}

function listPath(namespace: string | undefined): string {
  if (namespace !== undefined) return `${archivePath(namespace, "/runs")}?namespace=${encodeURIComponent(namespace)}`;
  return `${everywhere}/runs`;
}

/** everywhere is the results server for whoever has the right in all namespaces. */
export const everywhere = `${base}/apis/results.vignette.dev/v1alpha1/archives/default/proxy/v1`;

/** filePath is where a file of a run can be read. */
export function filePath(namespace: string, uid: string, path: string): string {
  return archivePath(namespace, `/runs/${encodeURIComponent(uid)}/files/${path.split("/").map(encodeURIComponent).join("/")}`);
}

/** reportPath is the report as a page that has no origin. */
export function reportPath(namespace: string, uid: string): string {
  return archivePath(namespace, `/runs/${encodeURIComponent(uid)}/report`);
}

/** fileKinds are the kinds of a run's files: the folders that have a kind of their own, and records, which are all others. */
export const fileKinds = ["results", "logs", "captures", "radio", "records"] as const;
export type FileKind = (typeof fileKinds)[number];

export function kindOfFile(path: string): FileKind {
  const [folder = "", ...below] = path.split("/");
  return below.length > 0 && (fileKinds as readonly string[]).includes(folder) ? (folder as FileKind) : "records";
}

/** archiveTarPath is all files of a run, or those of some kinds, in one archive. */
export function archiveTarPath(namespace: string, uid: string, kinds: readonly FileKind[]): string {
  const only = kinds.length === fileKinds.length ? "" : `?only=${kinds.join(",")}`;
  return archivePath(namespace, `/runs/${encodeURIComponent(uid)}/archive.tar${only}`);
}

/** headlineGroup of the results; in older ones that of all deliveries. */
export function headlineGroup(results: Results): GroupResult {
  const found = results.groups?.find(({ name }) => name === results.headline);
  return found ?? { name: "all", messages: results.messages, delaySeconds: results.delaySeconds, ...(results.requests && { requests: results.requests }) };
}
