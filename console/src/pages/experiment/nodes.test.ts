// @vitest-environment node
import { expect, test } from "vitest";
import type { RunState } from "../../archive/types";
import { expandNodes } from "../../components/topology/expand";
import type { Experiment } from "../../types";
import { arrange, nodeRows, orderOf, type NodePod } from "./nodes";

const e = {
  metadata: { name: "exp", namespace: "team" },
  spec: {
    apps: [],
    networks: [],
    nodes: [
      { name: "hq", networks: ["wan"], apps: ["broker"] },
      { name: "veh", count: 12, group: "mobile", networks: ["wan"], apps: ["bft"] },
    ],
  },
} as unknown as Experiment;

function state(more: object): RunState {
  return { plan: { nodes: [{ name: "veh-2", nem: 3, addresses: { wan: "198.18.0.3" } }], ...more }, agents: null } as unknown as RunState;
}

function agent(node: string, phase: string, more = {}) {
  return { node, app: "bft", phase, restarts: 0, worstLatenessSeconds: 0, reportedAt: "2026-01-01T00:00:00Z", ...more };
}

test("a node with a count has as many nodes, whose NEM ids follow their places", () => {
  const nodes = expandNodes(e.spec);
  expect(nodes).toHaveLength(13);
  expect(nodes[0]).toMatchObject({ name: "hq", group: "hq", nem: 1 });
  expect(nodes[12]).toMatchObject({ name: "veh-12", group: "mobile", nem: 13 });
  expect(expandNodes({ nodes: [{ name: "a", count: 2, nem: 7 }] }).map((n) => n.nem)).toEqual([7, 8]);
});

test("nodes are shown before there is a plan", () => {
  expect(nodeRows(e, undefined, [])[2]).toMatchObject({ name: "veh-2", host: "", state: "", addresses: ["wan"] });
});

test("the plan gives addresses, the pod the host", () => {
  const pod = { metadata: { name: "p", labels: { "vignette.dev/node": "veh-2" } }, spec: { nodeName: "n1" }, status: { phase: "Running" } };
  expect(nodeRows(e, state({}), [pod])[2]).toMatchObject({ host: "n1", addresses: ["wan 198.18.0.3"], state: "Running", isBad: false });
});

test("when the pods are gone, the run record says which host had a node", () => {
  expect(nodeRows(e, state({ environment: { hosts: [{ name: "n2", nodes: ["veh-2"] }] } }), [])[2]?.host).toBe("n2");
});

test("a failed app leaves its last words", () => {
  const failed = { ...state({}), agents: [agent("veh-2", "running", { restarts: 1 }), agent("veh-2", "failed", { restarts: 2, message: "exit code 3: no route" })] } as RunState;
  expect(nodeRows(e, failed, [])[2]).toMatchObject({ state: "failed", isBad: true, restarts: 3, lastWords: "exit code 3: no route" });
});

test("the state of a node names the phases of its agents", () => {
  const mixed = { ...state({}), agents: [agent("veh-2", "stopped"), agent("veh-2", "running")] } as RunState;
  expect(nodeRows(e, mixed, [])[2]?.state).toBe("running, stopped");
});

test("a container that cannot start says why", () => {
  const waiting = (reason: string): NodePod => ({
    metadata: { name: "p", labels: { "vignette.dev/node": "hq" } },
    status: { containerStatuses: [{ name: "broker", ready: false, restartCount: 0, state: { waiting: { reason, message: "not found" } } }] },
  });
  expect(nodeRows(e, undefined, [waiting("ErrImagePull")])[0]).toMatchObject({ state: "ErrImagePull", isBad: true, lastWords: "not found" });
  expect(nodeRows(e, undefined, [waiting("ContainerCreating")])[0]).toMatchObject({ isBad: false });
});

test("every word of the filter must be in some cell", () => {
  const rows = nodeRows(e, undefined, []);
  const order = { column: "name", descending: false } as const;
  expect(arrange(rows, "MOBILE veh-1", order).map((r) => r.name)).toEqual(["veh-1", "veh-10", "veh-11", "veh-12"]);
  expect(arrange(rows, "mobile hq", order)).toEqual([]);
});

test("names with numbers are sorted by their numbers", () => {
  const rows = nodeRows(e, undefined, []);
  expect(arrange(rows, "veh", { column: "name", descending: true }).map((r) => r.name).slice(0, 3)).toEqual(["veh-12", "veh-11", "veh-10"]);
  expect(arrange(rows, "", { column: "nem", descending: false }).map((r) => r.nem).slice(0, 3)).toEqual([1, 2, 3]);
});

test("a column that the table does not have leaves the order of NEM ids", () => {
  expect(orderOf({ id: "restarts", descending: true })).toEqual({ column: "restarts", descending: true });
  expect([orderOf(undefined), orderOf({ id: "__proto__", descending: true })]).toEqual([{ column: "nem", descending: false }, { column: "nem", descending: false }]);
});
