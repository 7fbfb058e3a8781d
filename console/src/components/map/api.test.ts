// @vitest-environment node
import { expect, test } from "vitest";
import { hopsOver, isOfNetwork, isRouted, jammersAt, linksKey, linksOf, nodesOf, silentAt, type RunMapData } from "./api";

const data: RunMapData = {
  nodes: [
    { name: "hq", networks: ["vhf"], broker: true, track: [[0, 58.1, 7.9, 10]] },
    { name: "veh-1", networks: ["vhf", "sat"], track: [[0, 58.2, 7.9, 10], [60, 58.3, 7.9, 10]], reported: [[12, 58.2, 7.9, 0]] },
    { name: "rear", networks: ["sat"], track: null },
  ],
  networks: [{ name: "vhf", model: "tdma" }, { name: "sat", model: "link" }],
  jammers: [{ network: "vhf", name: "noise", fromSeconds: 10, toSeconds: 20, latitude: 58.2, longitude: 8, rangeMetres: 2000 }, { network: "vhf", name: "everywhere", fromSeconds: 0, latitude: null, longitude: null }],
  silences: [{ network: "vhf", node: "hq", fromSeconds: 5 }, { network: "sat", node: null, fromSeconds: 30, toSeconds: 40 }],
};

test("a network has its own nodes, and brokers a symbol of their own", () => {
  expect(nodesOf(data, "vhf").map((node) => node.name)).toEqual(["hq", "veh-1"]);
  expect(new Set(nodesOf(data).map((node) => node.symbol)).size).toBe(2);
  expect(nodesOf(data)[1]?.track[1]).toEqual({ at: 60, latitude: 58.3, longitude: 7.9, altitude: 10 });
});

test("reported positions are those of the node, and of most there are none", () => {
  expect(nodesOf(data).map((node) => node.reported?.map(({ at }) => at))).toEqual([[], [12], []]);
});

test("a jammer with a place is there from its start to its end, on its network", () => {
  expect([9, 10, 20].map((at) => jammersAt(data, "vhf", at).length)).toEqual([0, 1, 0]);
  expect(jammersAt(data, "sat", 15)).toEqual([]);
});

test("a silence is of a node, or of all nodes of a network", () => {
  expect([...silentAt(data, "vhf", 100)]).toEqual(["hq"]);
  expect([...silentAt(data, "sat", 35)]).toEqual(["veh-1", "rear"]);
  expect([...silentAt(data, "sat", 40)]).toEqual([]);
});

const links = { links: [{ from: "a", to: "b", sinr: 12, delivered: 0.95 }, { from: "b", to: "a", sinr: -4, delivered: null }, { from: "b", to: "c", sinr: 3, delivered: 0.02 }] };

test("links have the class of the measure that is chosen", () => {
  const both = { links: [...links.links.slice(0, 1), { from: "b", to: "a", sinr: -4, delivered: 0.6 }] };
  expect(linksOf(both, "sinr").map((l) => l.linkClass)).toEqual([0]);
  expect(linksOf(both, "delivered").map((l) => l.linkClass)).toEqual([2]);
});

test("nothing is known of what a silent radio sends, though it was heard just before", () => {
  const both = { links: [{ from: "a", to: "b", sinr: 29 }, { from: "b", to: "a", sinr: 30 }] };
  expect(linksOf(both, "sinr", new Set(["b"]))).toEqual([{ from: "a", to: "b", linkClass: -1, forward: 29, backward: null }]);
  expect(linksOf(both, "sinr", new Set(["c"]))[0]?.linkClass).toBe(4);
});

test("hops are counted from the selected node, else from the one that the server chose", () => {
  expect([...hopsOver(links, "a")]).toEqual([["a", 0], ["b", 1], ["c", 2]]);
  expect([...hopsOver({ ...links, hopsFrom: "c", hops: [{ to: "a", hops: 3 }] }, undefined)]).toEqual([["a", 3]]);
  expect(hopsOver(undefined, "a").size).toBe(0);
});

test("without routing nobody relays, so that only direct links count", () => {
  expect([...hopsOver(links, "a", false)]).toEqual([["a", 0], ["b", 1]]);
  expect([...hopsOver({ ...links, hopsFrom: "a", hops: [{ to: "b", hops: 1 }, { to: "c", hops: 2 }] }, undefined, false)]).toEqual([["b", 1]]);
});

test("a network is routed if something sets its routes", () => {
  const networks = [{ name: "vhf" }, { name: "hf", routing: { protocol: "none" } }, { name: "uhf", routing: { protocol: "static" } }];
  expect(["vhf", "hf", "uhf", "sat"].filter((name) => isRouted(networks, name))).toEqual(["uhf"]);
});

test("hops are those of the routes, where the server has them", () => {
  const routed = { ...links, hopsByRoutes: true, hopsFrom: "a", hops: [{ to: "c", hops: 5 }] };
  expect([...hopsOver(routed, "a")]).toEqual([["c", 5]]);
  expect(hopsOver(routed, "b").size).toBe(0);
});

test("links of another moment are of the network, and those of another network are not", () => {
  const key = linksKey("e5", "u1", "vhf", 10, undefined);
  expect(isOfNetwork(key, linksKey("e5", "u1", "vhf", undefined, "hq"))).toBe(true);
  expect(isOfNetwork(key, linksKey("e5", "u1", "sat", 10, undefined))).toBe(false);
  expect(isOfNetwork(key, linksKey("e5", "u2", "vhf", 10, undefined))).toBe(false);
  expect(isOfNetwork(key, undefined)).toBe(false);
});
