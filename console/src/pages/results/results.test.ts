// @vitest-environment node
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { archiveTarPath, fileKinds, filePath, headlineGroup, kindOfFile, readAgainAfter, type RunState } from "../../archive/runs";
import type { Results } from "../../archive/types";
import { Refusal } from "../../kubernetes/client";
import { boxesOf, chosenBoxes, leftMargin, mostBoxes, needsLogarithm, shortened } from "../../components/plots/boxes";
import { dotOf, sampleWords } from "./deliveries";
import { chosenKinds, filesShown, sizeOf } from "./fileKinds";
import { layerVolumes } from "./layers";
import { chosenLosses, lossesOf } from "./losses";
import { curveOf, pairWords } from "./picture";
import { figureColumns, figureRows, found } from "./rows";
import { droppedWords, gapsLabel, headlinesOf, lateWords, offBy, reasonsOf, verdictWords, when } from "./words";

const state = JSON.parse(readFileSync(new URL("../../testing/data/run.json", import.meta.url), "utf8")) as RunState;
const results = state.results as Results;

test("the headline has delivered, delays and requests with their intervals", () => {
  expect(headlinesOf(results).map(({ label, value, note }) => `${label}: ${value} ${note}`)).toEqual([
    "Delivered: 80 % [49.02 %, 94.33 %] · 8 of 10 deliveries",
    "Messages sent: 8 of 10 that apps wanted to send",
    "Median delay: 1.45 s [1.45 s, 1.48 s]",
    "Mean delay: 1.46 s [1.45 s, 1.52 s]",
    "Greatest delay: 1.50 s 95 % took at most 1.50 s",
    "Requests with a receipt: 70 % [39.68 %, 89.22 %] · 7 of 10",
    "Mean response time: 16.8 s [16.5 s, 18.4 s]",
  ]);
});

test("the headline has the size of messages on the wire by protocol, where it was captured", () => {
  const sized = { ...results, messageSizes: [{ protocol: "mqtt", messages: 240, medianBytes: 1034 }] };
  expect(headlinesOf(sized).map(({ label, value, note }) => `${label}: ${value} ${note}`)).toContain("Message on the wire, mqtt: 1\u202f034 B median of 240");
});

test("the verdict says what was exceeded, by how much figures may be off, and when nobody can know", () => {
  expect(verdictWords(results)).toMatchObject({ state: "good", title: "The emulation kept up" });
  expect(offBy(headlineGroup(results))).toBe("58.9 µs of the median, 18.2 ms of the 95th percentile, 0 points of the delivered share");
  const late = { ...results, verdict: { keptUp: false, late: null, exceeded: ["the median may be off by 456 ms"] } };
  expect(verdictWords(late)).toMatchObject({ state: "bad", sentences: ["the median may be off by 456 ms", expect.stringContaining("58.9 µs")] });
  const without = { ...results };
  delete without.verdict;
  expect(verdictWords(without).state).toBe("unknown");
});

test("a loss of the emulation is not said to be late", () => {
  const moment = { node: "prt", fromSeconds: 10, toSeconds: 11, what: "2 frames queueFull on wan" };
  expect(lateWords({ ...moment, worstSeconds: 0 })).toBe("2 frames queueFull on wan at prt");
  expect(lateWords({ ...moment, worstSeconds: 0.02 })).toBe("2 frames queueFull on wan at prt, by 20.0 ms at worst");
});

test("older results without a headline speak of all deliveries", () => {
  const older = { ...results };
  delete older.headline;
  expect(headlineGroup(older)).toMatchObject({ name: "all", messages: results.messages });
});

test("times of gaps are after T0", () => {
  expect(when({ fromSeconds: 60, toSeconds: 125 })).toBe("T0+1m00s to T0+2m05s");
  expect(when({ fromSeconds: 60, toSeconds: 60.2 })).toBe("at T0+1m00s");
  expect(when({ fromSeconds: 5 })).toBe("from T0+5s");
  expect(when({})).toBe("");
  expect(gapsLabel(results)).toBe("1 gap");
  expect(gapsLabel({ ...results, gaps: null })).toBe("No gaps");
});

test("dropped frames are counted with their reasons", () => {
  expect(droppedWords({ sent: 1200, received: 3577, drops: { queueFull: 3, loss: 20 } })).toBe("23 (20 loss, 3 queueFull)");
  expect(droppedWords({ sent: 1200, received: 1200, drops: null })).toBe("0");
  expect(droppedWords(undefined)).toBe("\u2013");
});

test("reasons of failed requests begin with the most frequent", () => {
  expect(reasonsOf(results.requests?.failed)).toEqual([
    ["unreachable", 2],
    ["timeout", 1],
  ]);
  expect(reasonsOf(null)).toEqual([]);
});

test("every group, publisher and pair is a row, and search takes name or node", () => {
  expect(figureRows(results, "groups").map(({ name }) => name)).toEqual(results.groups?.map(({ name }) => name));
  const publishers = figureRows(results, "publishers");
  expect(publishers.map(({ name, of }) => `${name} on ${of}`)).toContain("client/service on client");
  expect(found(publishers, "CLIENT")).toHaveLength(publishers.length);
  expect(found(publishers, "nobody")).toHaveLength(0);
  expect(figureColumns("publishers", publishers).map(({ head }) => head)).toContain("Mean response");
});

test("in a row of figures, deliveries that arrived, were lost or never sent add up to the offered ones", () => {
  const messages = { sent: 19, neverSent: 81, offered: 300, expected: 57, received: 50, lost: 7, lostPercent: 12.3, duplicates: 0 };
  const of = (row: object) => figureRows({ ...results, publishers: [{ name: "a", node: "n", messages: row } as never] }, "publishers");
  const shown = (row: object) => figureColumns("publishers", of(row)).find(({ id }) => id === "neverSent")?.value(of(row)[0] as never);
  expect(shown(messages)).toBe(243);
  expect(shown({ ...messages, offered: undefined })).toBeUndefined(); // older results count none of these
});

test("losses are split into lost on the way and never sent", () => {
  const losses = lossesOf(results.groups ?? []);
  expect(losses.find(({ name }) => name === "radio")).toMatchObject({ lost: 0, neverSent: 20 });
  expect(losses.map(({ name }) => name)).not.toContain("local");
});

test("of many losses the greatest are drawn, in their order", () => {
  const many = Array.from({ length: 100 }, (_, i) => ({ name: `p${i}`, lost: i, neverSent: 1, low: undefined, high: undefined }));
  expect(chosenLosses(many)).toEqual(many.slice(40));
  expect(chosenLosses(many.slice(0, 60))).toEqual(many.slice(0, 60));
});

test("layers of a network add up to its volume", () => {
  const volumes = layerVolumes(results.networks ?? []);
  const sum = volumes.reduce((all, { bytesPerSecond }) => all + bytesPerSecond, 0);
  expect(sum / (results.networks?.[0]?.bytesPerSecond ?? NaN)).toBeCloseTo(1, 2);
});

test("of many boxes those with the greatest medians are drawn, in their order", () => {
  const boxes = boxesOf(Array.from({ length: 100 }, (_, i) => ({ name: `p${i}`, quantiles: { min: 1, p25: 1, median: i, p75: 100, max: 100 } })));
  const chosen = chosenBoxes(boxes);
  expect(chosen).toHaveLength(mostBoxes);
  expect(chosen[0]?.name).toBe("p40");
  expect(boxesOf([{ name: "local", quantiles: null }])).toEqual([]);
});

test("a logarithmic axis is for times that lie far apart, and none of which is 0", () => {
  const box = { name: "a", min: 0.001, p25: 0.01, median: 0.01, p75: 0.01, max: 0.02 };
  expect(needsLogarithm([box])).toBe(false);
  expect(needsLogarithm([{ ...box, max: 1 }])).toBe(true);
  expect(needsLogarithm([{ ...box, min: 0, max: 1 }])).toBe(false);
});

test("a long name is cut off to what its margin has room for", () => {
  const name = "a-rather-long-name-of-a-publisher-on-some-node/app/17";
  const margin = leftMargin([name], 390);
  expect(margin).toBeLessThanOrEqual(130);
  expect(shortened(name, margin)).toMatch(/^a-rather-.*…$/);
  expect(shortened("nor/bft", leftMargin(["nor/bft"], 390))).toBe("nor/bft");
});

test("a row of a table is a dot unless it took no time", () => {
  const cells = (row: Record<string, string>) => (column: string) => row[column] ?? "";
  const t0 = Date.parse("2026-11-27T07:24:00Z");
  const row = { publisher: "a", subscriber: "b", id: "a_1", sent: "1795764300500000000", delaySeconds: "1.5" };
  expect(dotOf(cells(row), "delaySeconds", t0)).toEqual({ at: 60.5, seconds: 1.5, publisher: "a", subscriber: "b", id: "a_1" });
  expect(dotOf(cells({ ...row, delaySeconds: "" }), "delaySeconds", t0)).toBeUndefined();
});

test("a sample is said to be one", () => {
  const rows = [1, 2];
  expect(sampleWords({ rows, read: 2, whole: true }, "deliveries", "d.csv")).toBe("All 2 deliveries are drawn.");
  expect(sampleWords({ rows, read: 9, whole: true }, "deliveries", "d.csv")).toContain("random sample of 2 of 9");
  expect(sampleWords({ rows, read: 2, whole: false }, "deliveries", "d.csv")).toContain("parts all over d.csv");
});

test("the error over time is averaged so that a curve has at most 240 moments", () => {
  const moments = Array.from({ length: 600 }, (_, at) => ({ at, median: at, p95: 2 * at }));
  const { seconds, moments: drawn } = curveOf(moments);
  expect([seconds, drawn.length]).toEqual([3, 200]);
  expect(drawn[1]).toEqual({ at: 3, median: 4, p95: 8 });
  expect(curveOf(moments.slice(7, 9))).toEqual({ seconds: 1, moments: moments.slice(7, 9) });
  expect(curveOf([])).toEqual({ seconds: 1, moments: [] });
});

test("the pairs with the greatest error are said to be some of many", () => {
  expect(pairWords({ rows: [1, 2], read: 2, whole: true }, "p.csv")).toBe("All 2 pairs, the greatest mean error first.");
  expect(pairWords({ rows: [1, 2], read: 9, whole: true }, "p.csv")).toBe("The 2 of 9 pairs with the greatest mean error.");
  expect(pairWords({ rows: [1, 2], read: 9, whole: false }, "p.csv")).toContain("parts all over p.csv");
});

test("files have the kinds of the archive, and are downloaded by them", () => {
  expect(["results/a.csv", "logs/n/a/x.log", "run.json", "results"].map(kindOfFile)).toEqual(["results", "logs", "records", "records"]);
  const files = [
    { path: "results/a.csv", bytes: 5 },
    { path: "run.json", bytes: 7 },
  ];
  expect(filesShown(files, chosenKinds(["results"]), "")).toEqual([files[0]]);
  expect(sizeOf(filesShown(files, chosenKinds([]), ""))).toBe(12);
  expect(archiveTarPath("e5", "u", fileKinds)).toMatch(/\/runs\/u\/archive\.tar$/);
  expect(archiveTarPath("e5", "u", ["logs"])).toMatch(/archive\.tar\?only=logs$/);
  expect(filePath("e5", "u", "logs/a b/#1.log")).toMatch(/files\/logs\/a%20b\/%231\.log$/);
});

test("a run is read until it has results, and an error does not end that", () => {
  const running = { ...state, plan: { ...state.plan, phase: "Running" } };
  expect([readAgainAfter(undefined, null), readAgainAfter(running, null), readAgainAfter(state, null)]).toEqual([5_000, 5_000, false]);
  expect(readAgainAfter(running, new Refusal(0, "no answer"))).toBe(15_000);
  expect(readAgainAfter(undefined, new Refusal(403, "no right"))).toBe(30_000);
});
