import type { Page, Route } from "@playwright/test";

const namespace = "team-nor";
const name = "large";
const capacity = { schemaVersion: 1, hosts: [], teams: Array.from({ length: 9 }, (_, i) => ({ namespace: `team-${i}`, running: 1, queued: 0, quotas: [] })), queue: [], notShown: [] };
const uid = "99999999-2222-3333-4444-555555555555";

/** largePage is where a part of the world's running experiment is. */
export function largePage(tab: string): string {
  return `/ns/${namespace}/experiments/${name}?tab=${tab}`;
}

/** How much the world has. */
export interface Amounts {
  runs: number;
  nodes: number;
  events: number;
}

/** serveLargeWorld answers in place of the console's server and of the cluster: one experiment runs, and others have ended. */
export async function serveLargeWorld(page: Page, { runs, nodes, events }: Amounts): Promise<void> {
  const t0 = Date.now() - 3_600_000;
  const lists: Record<string, unknown[]> = {
    experiments: [runningExperiment(t0, nodes), ...Array.from({ length: runs - 1 }, (_, i) => endedExperiment(t0, i))],
    pods: Array.from({ length: nodes }, (_, i) => podOf(i)),
  };
  await page.routeWebSocket(/\/k8s\//, () => undefined);
  await page.route(/\/(k8s|console\/v1)\//, async (route) => {
    const { pathname, searchParams } = new URL(route.request().url());
    if (pathname.endsWith("/session")) await json(route, { mode: "local", user: "ola", groups: [], context: "test", namespace, platformNamespace: "vignette-system", version: "test" });
    else if (pathname.endsWith("selfsubjectaccessreviews")) await json(route, { status: { allowed: true } }, 201);
    else if (pathname.endsWith("/events.jsonl")) await route.fulfill({ contentType: "application/jsonl", body: eventLines(t0, events, nodes) });
    else if (pathname.endsWith(`/runs/${uid}`)) await json(route, stateOf(t0));
    else if (pathname.includes("results.vignette.dev")) await json(route, []);
    else if (pathname.endsWith("/capacity")) await json(route, capacity);
    else if (pathname.startsWith("/console/v1/")) await json(route, {});
    else await json(route, { metadata: { resourceVersion: "1" }, items: only(lists[pathname.split("/").at(-1) ?? ""] ?? [], searchParams.get("fieldSelector")) });
  });
}

function only(items: unknown[], selector: string | null): unknown[] {
  const wanted = /^metadata\.name=(.+)$/.exec(selector ?? "")?.[1];
  return wanted === undefined ? items : items.filter((item) => (item as { metadata: { name: string } }).metadata.name === wanted);
}

function json(route: Route, body: unknown, status = 200): Promise<void> {
  return route.fulfill({ status, contentType: "application/json", body: JSON.stringify(body) });
}

function specOf(nodes: number) {
  return { duration: "2h", networks: [{ name: "vhf", waveform: "tdma-wideband", subnet: "198.18.0.0/22" }], nodes: [{ name: "veh", count: nodes, networks: ["vhf"], apps: ["bft"] }], apps: [{ name: "bft" }] };
}

function runningExperiment(t0: number, nodes: number) {
  const time = new Date(t0).toISOString();
  return { metadata: { name, namespace, uid, resourceVersion: "1", creationTimestamp: time }, spec: specOf(nodes), status: { phase: "Running", t0: time, progress: "50%", nodes: { total: nodes, ready: nodes }, conditions: [] } };
}

function endedExperiment(t0: number, i: number) {
  const time = new Date(t0 - 60_000 * i).toISOString();
  const results = { sent: 1000, expected: 1000, offered: 1000, received: 1000 - (i % 100), medianDelay: `${10 + (i % 50)}ms`, keptUp: i % 7 !== 0, gaps: 0 };
  return { metadata: { name: `run-${i}`, namespace: `team-${i % 9}`, uid: `ended-${i}`, resourceVersion: "1", creationTimestamp: time }, spec: specOf(24), status: { phase: i % 11 === 0 ? "Failed" : "Succeeded", t0: time, completionTime: time, results, conditions: [] } };
}

function podOf(i: number) {
  const node = `veh-${i + 1}`;
  return { metadata: { name: `${name}-${node}`, namespace, uid: `pod-${i}`, labels: { "vignette.dev/node": node } }, spec: { nodeName: `host-${i % 4}`, containers: [{ name: "bft" }] }, status: { phase: "Running", containerStatuses: [{ name: "bft", ready: true, restartCount: 0 }] } };
}

function stateOf(t0: number) {
  return { plan: { namespace, name, uid, t0: new Date(t0).toISOString(), phase: "Running", nodes: [] }, agents: [], counters: { triggered: 0, sent: 0, received: 0, processed: 0 }, sealed: false };
}

// About one event a second, as in an hour of a large run.
function eventLines(t0: number, events: number, nodes: number): string {
  const line = (i: number) =>
    JSON.stringify({ ts: (t0 + 1000 * i) * 1e6, uid: `event-${i}`, type: i % 20 === 0 ? "Warning" : "Normal", reason: "Probe", message: `Message ${i} of an agent that tells what its app has done`, object: { kind: "Pod", name: `${name}-veh-${(i % nodes) + 1}` }, node: `veh-${(i % nodes) + 1}`, count: 1 });
  return `${Array.from({ length: events }, (_, i) => line(i)).join("\n")}\n`;
}
