// @vitest-environment node
import { expect, test } from "vitest";
import { comparisonPath, type ReferenceFigure } from "../../archive/comparison";
import { boxesOf } from "../../components/plots/boxes";
import { sortRows } from "../../components/sorting";
import { boxReferences, closeness, marksOf, referenceColumns, referenceRows, referencesOf, referenceText } from "./references";

const median: ReferenceFigure = {
  source: "paper.csv",
  label: "way=coap",
  runs: 5,
  group: "radio",
  metric: "medianSeconds",
  value: 2,
  measured: 2.5,
  interval: { low: 2.2, high: 2.9 },
  difference: 0.5,
  differencePercent: 25,
  covered: false,
  withinLateness: false,
  note: "made up",
};
const delivered: ReferenceFigure = { ...median, metric: "deliveredPercent", value: 90, measured: 89, interval: { low: 85, high: 93 }, difference: -1, differencePercent: -1.111, covered: true, withinLateness: true, note: "" };
const unknown: ReferenceFigure = { ...median, metric: "receiptPercent", measured: null, interval: null, difference: null, differencePercent: null, covered: null };
const nothingSent: ReferenceFigure = { ...median, metric: "lost", value: 0, measured: 3, interval: null, difference: 3, differencePercent: null, covered: null };

test("reference figures have the unit of their metric, and say whether the interval covers them", () => {
  expect(referenceRows([median, delivered, unknown, nothingSent]).map(({ value, measured, difference, relative, covered }) => [value, measured, difference, relative, covered])).toEqual([
    ["2.00 s", "2.50 s [2.20 s, 2.90 s]", "+500 ms", "+25.0 %", "not covered"],
    ["90 %", "89 % [85 %, 93 %]", "-1.00 points", "-1.1 %", "covered (within lateness)"],
    ["2 %", "–", "–", "–", "not measured"],
    ["0", "3", "+3", "–", "no interval"],
  ]);
});

test("reference figures are sorted by their numbers, not by what is written", () => {
  const rows = referenceRows([{ ...median, difference: 0.4, label: "small" }, { ...median, difference: 1.2, label: "great" }, { ...unknown, label: "none" }]);
  expect(sortRows(rows, referenceColumns, { id: "difference", descending: true }).map((row) => [row.label, row.difference])).toEqual([["great", "+1.20 s"], ["small", "+400 ms"], ["none", "–"]]);
});

test("a reference figure of a condition has no verdict in the row of one of its runs", () => {
  expect(referenceText(median, "way=coap")).toBe("medianSeconds 2.00 s: not covered");
  expect(referenceText(median, "way=coap #1")).toBe("medianSeconds 2.00 s");
});

test("a figure of a network is not one of the group that has the same name", () => {
  expect(referencesOf([{ ...median, metric: "bytesPerSecond" }, median], "radio", ["way=coap"])).toEqual([median]);
});

test("a sentence says how close the figures are", () => {
  expect(closeness({ covered: 1, notCovered: 1, withoutInterval: 1, notMeasured: 1, figures: [median, delivered, unknown, nothingSent] })).toBe(
    "Of 4 reference figures the interval of one's own covers 1, and not 1; 1 without an interval; 1 not measured.",
  );
  expect(closeness({ covered: 1, notCovered: 0, withoutInterval: 0, notMeasured: 0, figures: [delivered] })).toBe("Of 1 reference figure the interval of one's own covers 1, and not 0.");
});

test("figures are drawn in percent of the reference, those without a share of it not", () => {
  const [mark, ...rest] = marksOf([median, unknown, nothingSent]);
  expect(rest).toEqual([]);
  expect(mark).toMatchObject({ name: "medianSeconds of radio: way=coap", percent: 25, covered: false });
  expect([mark?.low, mark?.high].map((value) => value?.toFixed(1))).toEqual(["10.0", "45.0"]);
});

test("a box has the delays of its run or condition as references, and no others", () => {
  const figures = [median, delivered, { ...median, group: "all" }, { ...median, label: "way=direct" }];
  const own = referencesOf(figures, "radio", ["way=coap #1", "way=coap"]);
  expect(own).toEqual([median, delivered]);
  expect(boxReferences(own)).toEqual([{ what: "median", seconds: 2 }]);
  const quantiles = { min: 1, p25: 1, median: 1, mean: 1, p75: 1, p95: 1, max: 1 };
  expect(boxesOf([{ name: "a", quantiles, references: boxReferences(own) }, { name: "b", quantiles, references: [] }]).map((box) => box.references)).toEqual([[{ what: "median", seconds: 2 }], undefined]);
});

test("a chosen file goes to the server with its name", () => {
  const path = comparisonPath({ runs: [{ namespace: "e5", uid: "a" }], by: undefined, reference: { name: "paper.csv", text: "run,metric,value\nx,sent,1\n" } }, "json");
  expect(path).toMatch(/\?format=json&reference=run%2Cmetric%2Cvalue%0Ax%2Csent%2C1%0A&referenceName=paper.csv&run=a$/);
});
