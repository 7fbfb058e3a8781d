import * as plot from "@observablehq/plot";
import { expect, test } from "vitest";
import { drawCurve } from "./picture";

function marksOf(errors: readonly number[]): string[] {
  const drawn = drawCurve(plot, errors.map((error, at) => ({ at, median: error, p95: error })), 600);
  return [...drawn.querySelectorAll('[aria-label="y-axis tick label"] text')].map((mark) => mark.textContent);
}

test("nodes that are where they were reported have an axis with marks", () => {
  expect(marksOf([0, 0])).toEqual(["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
});

test("an error that stays the same has an axis with marks that differ", () => {
  const marks = marksOf([5, 5]);
  expect(new Set(marks).size).toBe(marks.length);
  expect(marks.length).toBeGreaterThan(2);
});
