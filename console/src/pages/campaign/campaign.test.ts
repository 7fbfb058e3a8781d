// @vitest-environment node
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { RunState } from "../../archive/runs";
import type { Results, RunSummary } from "../../archive/types";
import { sortRows } from "../../components/sorting";
import type { Campaign } from "../../types";
import { choiceOf } from "./choice";
import { cellsOf, colourOf, luminance, moved, placeOf, scaleOf } from "./heat";
import { measureOf, valueOf } from "./measures";
import { pointsOf, withWords } from "./points";
import { archivedRounds, axesOf, measuredOf, offByMilliseconds, pageOf, repeatIn, runsOfStatus, selected, type Run } from "./round";

const read = (name: string): unknown => JSON.parse(readFileSync(new URL(`../../testing/data/${name}`, import.meta.url), "utf8"));
const campaign = read("campaign.json") as Campaign;
const results = (read("run.json") as RunState).results as Results;
const runs = runsOfStatus(campaign);
const axes = axesOf(campaign, runs);

test("axes and levels have the order of the spec, without levels that no run has", () => {
  expect(axes.map(({ name, levels }) => `${name}: ${levels.join(", ")}`)).toEqual(["network: cnr-1, wifi-2", "service: nffi, rest", "way: direct, http, amqp", "link: whole, cut"]);
  expect(axesOf(undefined, [{ ...(runs[0] as Run), levels: { a: "x" } }, { ...(runs[0] as Run), levels: {} }])).toEqual([{ name: "a", levels: ["x", "-"] }]);
});

test("without a choice the axes with most levels span the map, and the others are together", () => {
  const none = choiceOf(axes, () => undefined);
  expect([none.x?.name, none.y?.name, none.others.map(({ name }) => name), none.fixed]).toEqual(["way", "network", ["service", "link"], {}]);
  const chosen: Record<string, string> = { x: "link", y: "way", "axis.service": "rest", "axis.network": "no such level" };
  const some = choiceOf(axes, (name) => chosen[name]);
  expect([some.x?.name, some.y?.name, some.fixed]).toEqual(["link", "way", { service: "rest" }]);
});

test("a cell has the share of all offered deliveries of its runs", () => {
  const direct = selected(runs, { network: "cnr-1", way: "direct" });
  const measured = direct.flatMap(({ measured }) => measured ?? []);
  const want = (100 * measured.reduce((n, { received }) => n + received, 0)) / measured.reduce((n, { offered }) => n + offered, 0);
  expect(measured).toHaveLength(4);
  const [network, , way] = axes;
  if (!network || !way) throw new Error("the campaign has no axes");
  const cells = cellsOf(runs, way, network, measureOf("delivered"));
  expect(cells[0]?.[0]).toMatchObject({ x: "direct", y: "cnr-1", value: want });
  expect(cells[1]?.map(({ text }) => text)).toEqual(["pending", "pending", "pending"]);
});

test("times of several runs are averaged, and unknown ones left out", () => {
  const two = [0.2, 0.4, undefined].map((medianSeconds) => ({ ...(runs[0] as Run), measured: { ...measuredOf(results), medianSeconds } }));
  expect(valueOf(measureOf("median"), two)).toBeCloseTo(0.3);
  expect(valueOf(measureOf("receipts"), two)).toBe(70);
  expect(valueOf(measureOf("median"), [{ ...(runs[0] as Run), measured: undefined }])).toBeUndefined();
});

test("runs are sorted by how far the median may be off", () => {
  const words = ["0.3 ms of the median, 1.2 ms of p95", "", "0.059 ms of the median", "12 ms of the median"];
  const columns = [{ id: "offBy", value: offByMilliseconds }];
  expect(sortRows(words, columns, { id: "offBy", descending: true }).map((word) => word.split(" ")[0])).toEqual(["12", "0.3", "0.059", ""]);
});

test("figures of a failed run are not those of its point", () => {
  const [first] = campaign.status?.runs ?? [];
  if (!first?.results) throw new Error("the campaign has no measured run");
  const of = (phase: "Succeeded" | "Failed") => runsOfStatus({ ...campaign, status: { ...campaign.status, runs: [{ ...first, phase }] } })[0]?.measured;
  expect([of("Succeeded")?.received, of("Failed")]).toEqual([first.results.received, undefined]);
});

test("after an edit of the campaign the runs of the last spec count", () => {
  const bare: Run = { name: "p-1", uid: "u", point: "p", levels: {}, repeat: 1, phase: "Succeeded", message: "", tookSeconds: 1, measured: undefined };
  const run = (medianSeconds: number, specDigest?: string): Run => ({ ...bare, ...(specDigest !== undefined && { specDigest }), measured: { ...measuredOf(results), medianSeconds } });
  const median = measureOf("median");
  expect(valueOf(median, [run(1, "before"), run(2, "after"), run(4, "after"), bare])).toBe(3);
  expect(valueOf(median, [run(1, "before"), { ...run(3, "other"), point: "other" }])).toBe(2);
  expect(valueOf(median, [run(1), run(3)])).toBe(2);
});

test("the scale of a share ends at all, and times far apart have a logarithmic one", () => {
  const cells = (...values: number[]) => [values.map((value) => ({ x: "", y: "", runs: [], value, text: "" }))];
  expect(scaleOf(cells(91, 100), measureOf("delivered"))).toEqual({ least: 90, greatest: 100, logarithmic: false });
  expect(scaleOf(cells(43, 100), measureOf("delivered"))?.least).toBe(40);
  const times = scaleOf(cells(0.01, 1), measureOf("median"));
  expect(times?.logarithmic).toBe(true);
  expect(times && placeOf(0.1, times)).toBeCloseTo(0.5);
  expect(scaleOf([], measureOf("median"))).toBeUndefined();
});

test("the text of every colour has a contrast of at least 4.5 to 1", () => {
  for (let place = 0; place <= 1; place += 0.01) {
    const { fill, ink } = colourOf(place);
    const bright = luminance(fill.match(/\d+/g)?.map(Number) ?? []);
    expect(ink === "#000" ? (bright + 0.05) / 0.05 : 1.05 / (bright + 0.05)).toBeGreaterThanOrEqual(4.5);
  }
});

test("arrow keys stay within the map", () => {
  expect(moved("ArrowRight", [0, 0], 2, 3)).toEqual([0, 1]);
  expect(moved("ArrowUp", [0, 1], 2, 3)).toEqual([0, 1]);
  expect(moved("End", [1, 0], 2, 3)).toEqual([1, 2]);
  expect(moved("x", [0, 0], 2, 3)).toBeUndefined();
});

test("earlier rounds and deleted campaigns are read from the archive, the newest first", () => {
  const run = (uid: string, of: string, round: number, repeat: number): RunSummary => ({ namespace: "e5", name: `e5-p-${repeat}`, uid, phase: "Succeeded", campaign: { name: "e5", uid: of, round, point: "p", levels: {} } });
  const summaries = [run("a", "new", 2, 2), run("b", "new", 2, 1), run("c", "new", 1, 1), run("d", "old", 2, 1), { namespace: "e5", name: "alone", uid: "e", phase: "Succeeded" }];
  expect(archivedRounds(summaries, "e5", undefined).map(({ uid, round, runs: of }) => [uid, round, of.map((each) => each.uid).join()])).toEqual([
    ["new", 2, "b,a"],
    ["new", 1, "c"],
    ["old", 2, "d"],
  ]);
  expect(archivedRounds(summaries, "e5", "old")).toHaveLength(1);
  const [recorded] = archivedRounds([{ ...run("a", "new", 2, 2), campaign: { name: "e5", uid: "new", round: 2, point: "p", specDigest: "12ab" } }], "e5", undefined);
  expect(recorded?.runs[0]?.specDigest).toBe("12ab");
  expect([repeatIn("e5-p-12", "p"), repeatIn("e5-p-12", ""), repeatIn("e5", "p")]).toEqual([12, undefined, undefined]);
});

test("a run leads to its results, and to its experiment until it has some", () => {
  const [run] = runs;
  if (!run) throw new Error("the campaign has no run");
  expect(pageOf("e5", run)).toEqual({ to: "/ns/$namespace/runs/$uid", params: { namespace: "e5", uid: run.uid } });
  expect(pageOf("e5", { ...run, phase: "Pending", uid: "" })).toBeUndefined();
  expect(pageOf("e5", { ...run, phase: "Running" })).toEqual({ to: "/ns/$namespace/experiments/$name", params: { namespace: "e5", name: run.name } });
});

test("a failed run of an earlier round leads to its record, as another experiment may have its name", () => {
  const [round] = archivedRounds([{ namespace: "e5", name: "e5-p-1", uid: "u", phase: "Failed", campaign: { name: "e5", uid: "old", round: 1, point: "p" } }], "e5", undefined);
  expect(round?.runs.map((run) => pageOf("e5", run))).toEqual([{ to: "/ns/$namespace/runs/$uid", params: { namespace: "e5", uid: "u" } }]);
});

test("repeats of a point are one row, and search takes all words", () => {
  const repeats = [1, 2].map((repeat) => ({ ...(runs[0] as Run), repeat }));
  expect(pointsOf(repeats)).toHaveLength(1);
  expect(withWords(runs, "cnr-1 HTTP cut")).toHaveLength(2);
});
