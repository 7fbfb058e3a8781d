// @vitest-environment node
import { expect, test } from "vitest";
import { emptyScene, type Scene } from "./scene";
import { describeLink, describeScene, happeningsRemark, remarksOf, rowsOf } from "./words";

const scene: Scene = {
  ...emptyScene,
  nodes: [
    { name: "hq", symbol: "", track: [{ at: 0, latitude: 58, longitude: 8 }] },
    { name: "veh-1", symbol: "", track: [{ at: 0, latitude: 58, longitude: 8 }, { at: 60, latitude: 58.1, longitude: 8 }] },
    { name: "late", symbol: "", track: [{ at: 50, latitude: 58, longitude: 8 }] },
  ],
  links: [{ from: "hq", to: "veh-1", linkClass: 2, forward: 7, backward: null }],
  silent: new Set(["veh-1"]),
  jammers: [{ name: "noise", place: { latitude: 58, longitude: 8 } }],
  hops: new Map([["hq", 0], ["veh-1", 1]]),
  selected: "hq",
};

test("the text says what the picture shows", () => {
  expect(describeScene(scene, 10)).toBe("Map with 2 nodes of 3, 1 on the move; 1 link; 1 jammer: noise; 1 silent radio.");
});

test("nodes in a circle are described as such", () => {
  expect(describeScene({ ...scene, inCircle: true, jammers: [], silent: new Set() }, 100)).toBe("Map with 3 nodes without positions, in a circle; 1 link.");
});

test("nodes without a position are named, the first ten of them", () => {
  const nodes = Array.from({ length: 12 }, (_, i) => ({ name: `n${i + 1}`, symbol: "", track: [] }));
  expect(remarksOf({ nodes: [], networks: [] }, undefined, { ...scene, nodes, hops: new Map(), jammers: [] }, "vhf")).toEqual(["Without a position, and so not on the map: n1, n2, n3, n4, n5, n6, n7, n8, n9, n10 and 2 more."]);
});

test("the list says who is silent, how far, and not there yet", () => {
  expect(rowsOf(scene, 10).map((row) => row.words)).toEqual(["", "silent, 1 hop", "no position yet, no way"]);
});

test("a link is described in both directions", () => {
  expect(describeLink({ from: "hq", to: "veh-1", linkClass: 2, forward: 7, backward: null }, "sinr")).toBe("hq → veh-1: 7.0 dB; veh-1 → hq: not known");
});

test("the range of a jammer is said, as it may be larger than the map", () => {
  const jammers = [{ name: "noise", place: { latitude: 58, longitude: 8 }, rangeMetres: 89_300 }, { name: "new jammer", place: { latitude: 58, longitude: 8 } }];
  expect(remarksOf({ nodes: [], networks: [] }, undefined, { ...scene, jammers, hops: new Map() }, "vhf")).toEqual(["The noise of jammer noise is above that of the radios themselves up to 89 km."]);
});

test("hops over direct links only are said to be such", () => {
  const direct = { ...scene, isDirect: true };
  expect(rowsOf(direct, 100).map((row) => row.words)).toEqual(["", "silent, 1 hop", "no link lately"]);
  expect(remarksOf({ nodes: [], networks: [] }, undefined, { ...direct, jammers: [] }, "vhf")).toEqual([
    "Hops are counted from hq, over direct links on which something was received lately, as the network has no routing.",
  ]);
});

test("hops by routes are said to be such", () => {
  expect(remarksOf({ nodes: [], networks: [] }, { links: [], hopsFrom: "hq", hopsByRoutes: true }, { ...scene, jammers: [] }, "vhf")).toEqual(["Hops are counted from hq, along its OLSR routes."]);
});

test("what the map leaves out is said", () => {
  const data = { nodes: [], networks: [{ name: "wan", model: "link", links: false }], missing: ["terrain: the Scenario hills has changed since the run"] };
  const links = { links: [], leftOut: 3, hopsFrom: "hq" };
  const many = Array.from({ length: 2001 }, (_, i) => ({ from: `n${i}`, to: "hq", linkClass: 1, forward: 1, backward: 1 }));
  expect(remarksOf(data, links, { ...scene, links: many }, "wan")).toEqual([
    "The map lacks terrain: the Scenario hills has changed since the run",
    "Network wan has no radios. A link shows which share of its sender's frames was delivered lately.",
    "Hops are counted from hq, over links on which something was received lately.",
    "2000 of 2001 links are drawn: those of the selected node, then the best.",
    "3 more links have a lower SINR than those of the map.",
  ]);
});

test("while the run goes on, what happened may be behind", () => {
  const behind = "A change by hand stands here some seconds after it was applied.";
  expect(happeningsRemark(0, true)).toBe(`No network changes are known yet. ${behind}`);
  expect(happeningsRemark(2, true)).toBe(behind);
  expect(happeningsRemark(0, false)).toBe("No network changes in this run.");
  expect(happeningsRemark(2, false)).toBeUndefined();
});
