// @vitest-environment node
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { comparisonPath, runNamesOf, type Comparison } from "../../archive/comparison";
import type { RunState } from "../../archive/runs";
import type { RunSummary } from "../../archive/types";
import { sortRows } from "../../components/sorting";
import { chosenEffects, differenceColumns, differenceRows, effectsOf, inWords } from "./differences";
import { labelsOf } from "./labels";
import { pickable } from "./pickable";
import { byValue, differing, surroundingsOf, withLiveChanges } from "./surroundings";

const read = (name: string): unknown => JSON.parse(readFileSync(new URL(`../../testing/data/${name}`, import.meta.url), "utf8"));
const comparison = read("comparison.json") as Comparison;
const { plan } = read("run.json") as RunState;

test("runs of one namespace are compared there, others with the right in all", () => {
  const runs = runNamesOf(["e5/a", "e5/b", "nonsense", "a/b/c"]);
  expect(runs).toEqual([
    { namespace: "e5", uid: "a" },
    { namespace: "e5", uid: "b" },
  ]);
  expect(comparisonPath({ runs, by: undefined, reference: undefined }, "json")).toMatch(/namespaces\/e5\/archives\/default\/proxy\/v1\/compare\?format=json&run=a&run=b$/);
  expect(comparisonPath({ runs: [...runs, { namespace: "e6", uid: "c" }], by: "way", reference: undefined }, "csv")).toMatch(/v1alpha1\/archives\/default\/proxy\/v1\/compare\?format=csv&by=way&run=a&run=b&run=c$/);
});

test("differences are the server's figures, and delta is said in words", () => {
  const [difference] = comparison.groups[0]?.differences ?? [];
  expect(differenceRows(difference ? [difference] : [])).toMatchObject([
    {
      pair: "way=direct → way=coap",
      shift: "+3.20 s [+296 ms, +18.8 s]",
      delta: "1.00 [0.56, 1.00]",
      p: "< 0.001",
      loss: "-20.00 points [-57.02 points, +11.79 points]",
      lossP: "0.098",
      lateness: "",
      words: "A delay of way=coap is longer than one of way=direct in 100 % of pairs, ties counting half.",
    },
  ]);
  expect(inWords({ from: "a", to: "b", delay: null, loss: null, withinLateness: [] })).toBe("Delays cannot be compared.");
});

test("differences of requests are said of response times", () => {
  const effect = (estimate: number) => ({ shiftSeconds: null, cliffsDelta: { estimate, low: null, high: null }, brunnerMunzel: null });
  const differences = [0.5, 0].map((delta) => ({ from: "a", to: "b", delay: effect(delta), loss: null }));
  expect(differenceRows([...differences, { from: "a", to: "b", delay: null, loss: null }], "response time").map(({ words, lateness }) => [words, lateness])).toEqual([
    ["A response time of b is longer than one of a in 75 % of pairs, ties counting half.", ""],
    ["Neither a nor b tends to have longer response times.", ""],
    ["Response times cannot be compared.", ""],
  ]);
});

test("differences are sorted by their numbers, not by what is written", () => {
  const shifted = (to: string, estimate: number, tooFew: boolean) => ({ from: "a", to, delay: { shiftSeconds: { estimate, low: null, high: null }, cliffsDelta: null, brunnerMunzel: { p: 0.5, pHolm: 0.5, tooFew } }, loss: null, withinLateness: [] });
  const rows = differenceRows([shifted("b", 1.2, false), shifted("c", -2, true), shifted("d", 0.4, false)]);
  expect(sortRows(rows, differenceColumns, { id: "shift", descending: true }).map((row) => row.shift)).toEqual(["+1.20 s", "+400 ms", "-2.00 s"]);
  expect(sortRows(rows, differenceColumns, { id: "p", descending: true }).at(-1)?.p).toBe("too few");
});

test("of many differences those with the greatest effect are drawn", () => {
  const many = Array.from({ length: 100 }, (_, i) => ({ from: `a${i}`, to: "b", delay: { shiftSeconds: null, cliffsDelta: { estimate: (i % 2 ? -1 : 1) * (i / 100), low: null, high: null }, brunnerMunzel: null }, loss: null, withinLateness: [] }));
  const pairs = chosenEffects(effectsOf(many)).map(({ pair }) => pair);
  expect(pairs).toHaveLength(60);
  expect(pairs[0]).toBe("a40 → b");
});

test("surroundings show only what differs", () => {
  const other = structuredClone(plan);
  const host = other.environment?.hosts?.[0];
  if (host) host.kernel = "6.99";
  for (const image of other.environment?.images ?? []) if (image.container === "agent") image.id = "sha256:feed";
  expect(differing([plan, plan].map(surroundingsOf))).toEqual([]);
  expect(differing([plan, other].map(surroundingsOf)).map(({ field }) => field)).toEqual(["n1: kernel", "image of nodes' agent"]);
});

test("of many runs there is a row for each value", () => {
  expect(byValue([{ field: "seed", values: ["1", "2", "1"] }], ["x", "y", "z"])).toEqual([
    { field: "seed", value: "1", runs: ["x", "z"] },
    { field: "seed", value: "2", runs: ["y"] },
  ]);
});

test("labels of repeats are made different", () => {
  expect(labelsOf(comparison)).toEqual(["way=direct", "way=coap"]);
  const [first, second] = comparison.runs as [Comparison["runs"][number], Comparison["runs"][number]];
  const repeats = { ...comparison, runs: [first, { ...second, label: first.label, experiment: first.experiment }] };
  expect(new Set(labelsOf(repeats)).size).toBe(2);
});

test("runs with results are found by all words of their name, levels and UID", () => {
  const run = (name: string, phase: string): RunSummary => ({ namespace: "e5", name, uid: `u-${name}`, phase, campaign: { name: "e5", uid: "c", round: 1, point: name, levels: { way: "coap" } } });
  const runs = [run("one", "Succeeded"), run("two", "Running")];
  expect(pickable(runs, "")).toHaveLength(1);
  expect(pickable(runs, "COAP u-one")).toHaveLength(1);
  expect(pickable(runs, "coap amqp")).toHaveLength(0);
});

test("changes by hand are said in words", () => {
  const fields = [{ field: "duration", values: ["45s", "6m"] }, { field: "liveChanges", values: ["-", "name patrol-zxctk, atNanoseconds 73337495000, changes network vhf, from veh-c, silent true"] }];
  const changed = { ...plan, liveChanges: [{ name: "patrol-zxctk", atNanoseconds: 73337495000, changes: [{ network: "vhf", from: "veh-c", silent: true }] }] };
  expect(withLiveChanges(fields, [plan, changed])).toEqual([fields[0], { field: "changes by hand", values: ["–", "at 73.3 s, vhf, from veh-c: silent"] }]);
  expect(withLiveChanges(fields, [])).toEqual(fields);
});
