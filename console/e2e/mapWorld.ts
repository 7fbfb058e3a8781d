import type { Page, Route } from "@playwright/test";
import { readFileSync } from "node:fs";

/** A run with 24 nodes that move over hills, for tests of the map. It keeps the requests that it gets. */
export interface MapWorld {
  /** bodies of what was sent to create LiveChanges, Scenarios and ConfigMaps; dry runs too. */
  created: { path: string; dryRun: boolean; body: { spec?: { changes?: { jammer?: { position?: unknown } }[] } } }[];
  /** previews that were asked for, as YAML. */
  previews: string[];
}

export interface MapWorldOptions {
  positions?: boolean;
  allowed?: boolean;
  nodes?: number;
  /** archived: the run has ended, and the archive has its results. */
  archived?: boolean;
  /** background: the console that is under test has a background map. */
  background?: boolean;
}

const namespace = "team-nor";
const name = "bft";
const uid = "11111111-2222-3333-4444-555555555555";

/** mapPage is where the map of the world's run is. */
export const mapPage = `/ns/${namespace}/experiments/${name}?tab=map`;

/** terminalPage is the terminal of the world's run. */
export const terminalPage = `/ns/${namespace}/experiments/${name}?tab=terminal`;

/** mapOfResults is the map on the results page of the world's run. */
export const mapOfResults = `/ns/${namespace}/runs/${uid}?part=map`;

/** archivedRun is the state of a real run, with the names of the world's. */
function archivedRun(t0: string) {
  const state = JSON.parse(readFileSync(new URL("../src/testing/data/run.json", import.meta.url), "utf8")) as { plan: object };
  return { ...state, plan: { ...state.plan, namespace, name, uid, t0 } };
}

/** serveMapWorld answers in place of the console's server and of the cluster. */
export async function serveMapWorld(page: Page, { positions = true, allowed = true, nodes = 24, archived = false, background = false }: MapWorldOptions = {}): Promise<MapWorld> {
  const world: MapWorld = { created: [], previews: [] };
  const t0 = new Date(Date.now() - 300_000).toISOString();
  const experiment = {
    metadata: { name, namespace, uid, resourceVersion: "1", creationTimestamp: t0 },
    spec: { duration: "1h", networks: [{ name: "vhf", waveform: "tdma-wideband", subnet: "198.18.0.0/24" }], nodes: [{ name: "veh", count: nodes, networks: ["vhf"] }], apps: [] },
    status: { phase: "Running", t0, nodes: { total: nodes, ready: nodes }, conditions: [] },
  };
  await page.routeWebSocket(/\/k8s\//, () => undefined);
  await page.route(/\/(k8s|console\/v1)\//, async (route) => {
    const { pathname, searchParams } = new URL(route.request().url());
    if (pathname.startsWith("/console/v1/")) await answerConsole(route, pathname, world, { positions, nodes, background });
    else if (route.request().method() === "POST") await answerPost(route, pathname, searchParams.has("dryRun"), world, allowed);
    else if (pathname.endsWith("/experiments")) await json(route, listOf([experiment]));
    else if (pathname.endsWith("/pods")) await json(route, listOf([podOf("veh-1")]));
    else if (archived && pathname.endsWith(`/runs/${uid}`)) await json(route, archivedRun(t0));
    else if (pathname.includes("results.vignette.dev")) await json(route, { error: "run is not known" }, 404);
    else await json(route, listOf([]));
  });
  return world;
}

/** podOf a node, with the container of its only app. */
function podOf(node: string) {
  return { metadata: { name: `${name}-${node}`, namespace, uid: `pod of ${node}`, labels: { "vignette.dev/node": node, "vignette.dev/experiment-uid": uid } }, spec: { containers: [{ name: "app" }] }, status: { phase: "Running" } };
}

function listOf(items: unknown[]) {
  return { metadata: { resourceVersion: "1" }, items };
}

function json(route: Route, body: unknown, status = 200): Promise<void> {
  return route.fulfill({ status, contentType: "application/json", body: JSON.stringify(body) });
}

async function answerPost(route: Route, path: string, dryRun: boolean, world: MapWorld, allowed: boolean): Promise<void> {
  const body = route.request().postDataJSON() as MapWorld["created"][number]["body"];
  if (path.endsWith("selfsubjectaccessreviews")) {
    await json(route, { status: { allowed } }, 201);
    return;
  }
  world.created.push({ path, dryRun, body });
  const jammer = body.spec?.changes?.[0]?.jammer;
  if (jammer && !jammer.position) {
    const message = "a jammer needs either its position or its pathloss to every node";
    await json(route, { message, reason: "Invalid", details: { causes: [{ field: "spec.changes[0].jammer.position", message: `Invalid value: "object": ${message}` }] } }, 422);
    return;
  }
  await json(route, body, 201);
}

async function answerConsole(route: Route, path: string, world: MapWorld, options: Required<Pick<MapWorldOptions, "positions" | "nodes" | "background">>): Promise<void> {
  if (options.background && /\/(login|background)$/.test(path)) await route.continue();
  else if (path.endsWith("/session")) await json(route, { background: options.background, mode: "local", user: "ola", groups: [], context: "test", namespace, platformNamespace: "vignette-system", version: "test" });
  else if (path.endsWith("/map")) await json(route, mapOf(options));
  else if (path.endsWith("/links")) await json(route, linksOf(options.nodes));
  else if (path.endsWith("/preview")) {
    world.previews.push(route.request().postData() ?? "");
    await json(route, preview);
  } else await json(route, {});
}

/** trackOf a node: a grid that moves to the north-east for a quarter of an hour. */
function trackOf(index: number, columns: number): number[][] {
  const [latitude, longitude] = [58.15 + 0.012 * Math.floor(index / columns), 7.9 + 0.022 * (index % columns)];
  return [
    [0, latitude, longitude, 20],
    [900, latitude + 0.03, longitude + 0.03, 20],
  ];
}

function mapOf({ positions, nodes }: { positions: boolean; nodes: number }) {
  const columns = Math.ceil(Math.sqrt(nodes));
  const cells = 96;
  const heights = Array.from({ length: cells * cells }, (_, i) => Math.round(120 + 100 * Math.sin((i % cells) / 9) * Math.cos(Math.floor(i / cells) / 7)));
  return {
    durationSeconds: 3600,
    positions,
    nodes: Array.from({ length: nodes }, (_, i) => ({ name: `veh-${i + 1}`, group: "veh", platform: i + 1, networks: ["vhf"], broker: i === 0, track: positions ? trackOf(i, columns) : [] })),
    networks: [{ name: "vhf", model: "tdma", links: true }],
    terrain: positions ? { west: 7.85, south: 58.1, cellDegrees: 0.003, columns: cells, rows: cells, heights } : null,
    jammers: [{ network: "vhf", name: "noise", fromSeconds: 0, toSeconds: null, latitude: 58.17, longitude: 8.0, power: "100W", rangeMetres: 1500 }],
    silences: [{ network: "vhf", node: "veh-3", fromSeconds: 60, toSeconds: null }],
    happened: [{ atSeconds: 60, network: "vhf", nodes: ["veh-3"], what: "radio silence", change: { network: "vhf", from: "veh-3", radio: { transmit: false } } }],
    missing: [],
  };
}

function linksOf(nodes: number) {
  const columns = Math.ceil(Math.sqrt(nodes));
  const links = [];
  for (let i = 0; i < nodes; i++) {
    for (const j of [i + 1, i + columns]) {
      if (j >= nodes || (j === i + 1 && j % columns === 0)) continue;
      const sinr = -4 + ((7 * i + 3 * j) % 30);
      links.push({ from: `veh-${i + 1}`, to: `veh-${j + 1}`, sinr, delivered: 0.9, pathloss: 100 }, { from: `veh-${j + 1}`, to: `veh-${i + 1}`, sinr: sinr + 1, delivered: 0.9, pathloss: 100 });
    }
  }
  return { network: "vhf", atSeconds: 300, links, leftOut: 0, hopsFrom: "veh-1", hops: [{ from: "veh-1", to: "veh-2", hops: 1 }] };
}

const preview = {
  durationSeconds: 600,
  platforms: [{ number: 1, track: [[0, 58.19, 7.97, 0]] }, { number: 2, track: [[0, 58.2, 7.99, 0]] }],
  pathloss: true,
  warnings: [],
  limitDB: 121,
  atSeconds: 0,
  links: [{ from: 1, to: 2, pathloss: 98 }, { from: 2, to: 1, pathloss: 98 }],
  leftOut: 0,
  hops: [{ atSeconds: 0, counts: [0, 2], mean: 1, parts: 1 }, { atSeconds: 600, counts: [2], mean: 0, parts: 2 }],
  between: [],
  terrain: null,
};
