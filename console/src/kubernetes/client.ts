import type { Kind, KubernetesObject } from "./kinds";
import { learnTime } from "./time";

/** Cause is what the API server found wrong with one field. */
export interface Cause {
  /** field as Kubernetes writes it, such as spec.changes[0].link.delay. */
  field: string;
  message: string;
}

/** What the API server, or the console, answered instead of what was asked for. */
export class Refusal extends Error {
  constructor(
    /** status of HTTP; 0 if there was no answer. */
    readonly status: number,
    message: string,
    /** reason in one word, as Kubernetes gives it. */
    readonly reason = "",
    readonly causes: readonly Cause[] = [],
    /** login is the path at which the browser logs in; empty where the page has none. */
    readonly login = "",
  ) {
    super(message);
    this.name = "Refusal";
  }
}

export interface Selection {
  /** Objects of all namespaces if it is absent. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
}

export interface List<T> {
  resourceVersion: string;
  items: T[];
}

/** base is the path of the API server behind the console. */
export const base = "/k8s";

/** pathOf objects of a kind, or of one of them. */
export function pathOf(kind: Kind<KubernetesObject>, namespace?: string, name?: string): string {
  const group = kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const within = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  const object = name === undefined ? "" : `/${encodeURIComponent(name)}`;
  return `${base}${group}${within}/${kind.plural}${object}`;
}

type Listener = () => void;
const unknownListeners = new Set<Listener>();

/** onUnknownUser calls the listener whenever an answer says that nobody is logged in, until the returned function is called. */
export function onUnknownUser(listener: Listener): Listener {
  unknownListeners.add(listener);
  return () => {
    unknownListeners.delete(listener);
  };
}

/** sessionPath is where the console says who is logged in. */
export const sessionPath = "/console/v1/session";

/**
 * ask sends a request to the console's own origin and returns the answer.
 * It throws a Refusal, in words for people, where there is none or it is an error.
 */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  const asked = Date.now();
  try {
    answer = await fetch(path, { credentials: "same-origin", redirect: "error", ...init });
  } catch (reason) {
    if (isAbort(reason)) throw reason;
    throw new Refusal(0, "The console does not answer. Check the connection to it. If it is your own `vignette ui`, check whether that still runs.");
  }
  // The session's own answer says it to whoever asked for the session.
  if (answer.status === 401 && path !== sessionPath) for (const listener of unknownListeners) listener();
  if (!answer.ok) throw await refusalOf(answer);
  // Other answers have the clock of the console, which may run on the browser's own computer.
  if (path.startsWith(`${base}/`)) learnTime(answer.headers.get("date"), asked, Date.now());
  return answer;
}

async function refusalOf(answer: Response): Promise<Refusal> {
  const text = await answer.text().catch(() => "");
  try {
    const body = JSON.parse(text) as { message?: unknown; error?: unknown; reason?: unknown; login?: unknown; details?: { causes?: Partial<Cause>[] } };
    const message = body.message ?? body.error;
    if (typeof message === "string") {
      const causes = (body.details?.causes ?? []).map(({ field = "", message = "" }) => ({ field, message: plain(message) })).filter(({ field }) => field !== nowhere);
      const words = body.reason === "Invalid" && causes.length > 0 ? causes.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`)).join("; ") : message;
      return new Refusal(answer.status, words, wordOf(body.reason), causes, wordOf(body.login));
    }
  } catch {
    // not JSON: a proxy between may have answered
  }
  const words = /^\s*[<{[]/.test(text) ? "" : text.trim().slice(0, 300); // the source of a proxy's page has none
  return new Refusal(answer.status, words || `The server answered ${answer.status}.`);
}

function wordOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** nowhere is the field of the remark that further rules were not checked. */
const nowhere = "<nil>";

/** plain leaves out what the API server writes before the words of a rule. Only amounts have a pattern, as in internal/validate. */
function plain(message: string): string {
  return message
    .replace(/^(Invalid|Unsupported|Duplicate) value: .*?: (\S+ in body )?/, "")
    .replace(/^should match '.*'$/, "must be an amount such as 2, 500m or 1Gi")
    .replace(/^must be of type (\w+): "(\w+)"$/, "must be of type $1, not $2");
}

export async function askJSON<T>(path: string, init: RequestInit = {}): Promise<T> {
  const answer = await ask(path, { ...init, headers: { accept: "application/json", ...(init.headers as Record<string, string> | undefined) } });
  const text = await unbroken(answer.text());
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new Refusal(0, "The answer is not from the console's server. A proxy or a login page between may have answered.");
  }
}

function isAbort(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === "AbortError";
}

/** unbroken waits for a part of an answer. It throws a Refusal if the connection ends before. */
export async function unbroken<T>(part: Promise<T>): Promise<T> {
  try {
    return await part;
  } catch (reason) {
    throw isAbort(reason) ? reason : new Refusal(0, "The connection ended within the answer. Read it again.");
  }
}

function send<T>(method: string, path: string, body: unknown, contentType = "application/json"): Promise<T> {
  return askJSON<T>(path, { method, body: JSON.stringify(body), headers: { "content-type": contentType } });
}

/** parametersOf a selection, to which others are added. */
export function parametersOf(selection: Selection, more: Record<string, string> = {}): string {
  const parameters = new URLSearchParams(more);
  if (selection.labelSelector) parameters.set("labelSelector", selection.labelSelector);
  if (selection.fieldSelector) parameters.set("fieldSelector", selection.fieldSelector);
  return parameters.toString();
}

const pageSize = 500;

/** list returns all objects of a selection, which it reads in pages. */
export async function list<T extends KubernetesObject>(kind: Kind<T>, selection: Selection = {}, signal?: AbortSignal): Promise<List<T>> {
  const items: T[] = [];
  for (let next = ""; ; ) {
    const parameters = parametersOf(selection, { limit: String(pageSize), ...(next && { continue: next }) });
    const page = await askJSON<{ metadata: { resourceVersion: string; continue?: string }; items: T[] | null }>(
      `${pathOf(kind, selection.namespace)}?${parameters}`,
      signal ? { signal } : {},
    );
    items.push(...(page.items ?? []));
    next = page.metadata.continue ?? "";
    if (!next) return { resourceVersion: page.metadata.resourceVersion, items };
  }
}

export function get<T extends KubernetesObject>(kind: Kind<T>, namespace: string | undefined, name: string): Promise<T> {
  return askJSON<T>(pathOf(kind, namespace, name));
}

export interface WriteOptions {
  /** The API server checks everything and writes nothing. */
  dryRun?: boolean;
}

function writing(options: WriteOptions): string {
  return `?fieldManager=vignette-console&fieldValidation=Strict${options.dryRun ? "&dryRun=All" : ""}`;
}

export function create<T extends KubernetesObject>(kind: Kind<T>, namespace: string | undefined, object: T, options: WriteOptions = {}): Promise<T> {
  const body = { apiVersion: kind.group === "" ? kind.version : `${kind.group}/${kind.version}`, kind: kind.kind, ...object };
  return send<T>("POST", pathOf(kind, namespace) + writing(options), body);
}

/** patch changes the fields that are in the change; null removes one (RFC 7386). */
export function patch<T extends KubernetesObject>(kind: Kind<T>, namespace: string | undefined, name: string, change: unknown, options: WriteOptions = {}): Promise<T> {
  return send<T>("PATCH", pathOf(kind, namespace, name) + writing(options), change, "application/merge-patch+json");
}

/** remove deletes the object with that UID, and no later one of its name. */
export async function remove(kind: Kind<KubernetesObject>, namespace: string | undefined, name: string, uid: string): Promise<void> {
  await send("DELETE", pathOf(kind, namespace, name), { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } });
}

export interface Access {
  verb: "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";
  group: string;
  resource: string;
  subresource?: string;
  namespace?: string;
}

/** mayI reports whether Kubernetes allows the user that access. */
export async function mayI(access: Access): Promise<boolean> {
  const { verb, group, resource, subresource, namespace } = access;
  const review = await send<{ status?: { allowed?: boolean } }>("POST", `${base}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`, {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: { verb, group, resource, ...(subresource && { subresource }), ...(namespace && { namespace }) } },
  });
  return review.status?.allowed === true;
}
