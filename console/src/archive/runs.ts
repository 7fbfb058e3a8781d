import { queryOptions } from "@tanstack/react-query";
import { base, askJSON, Refusal } from "../kubernetes/client";
import { archivePath, fromArchive } from "./client";
import { askAgainAfter } from "./polling";
import type { GroupResult, Manifest, Results, RunState as State, RunSummary } from "./types";

/** RunState is what a page reads of what the results server knows of a run. */
export type RunState = Pick<State, "plan" | "incidents" | "problem" | "sealed" | "results">;

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
