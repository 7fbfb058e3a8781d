// @vitest-environment node
import { expect, test } from "vitest";
import { classes, classLabel, classOf, styleOf, unknownClass, valueLabel } from "./scale";

test("a value at a bound belongs to the better class", () => {
  expect([-3, 0, 4.9, 10, 20, 50].map((dB) => classOf("sinr", dB))).toEqual([0, 1, 1, 3, 4, 4]);
  expect([0, 50, 100].map((share) => classOf("delivered", share))).toEqual([0, 2, 4]);
});

test("what is not known has a class of its own", () => {
  expect([null, undefined, NaN].map((value) => classOf("sinr", value))).toEqual([unknownClass, unknownClass, unknownClass]);
  expect(valueLabel("sinr", null)).toBe("not known");
});

test("classes differ by their dashes as well as by their colours", () => {
  for (const scheme of ["light", "dark"] as const) {
    const styles = [unknownClass, 0, 1, 2, 3, 4].map((c) => styleOf(c, scheme));
    expect(new Set(styles.map((s) => s.dash.join())).size).toBe(classes + 1);
    expect(new Set(styles.map((s) => s.colour)).size).toBe(classes + 1);
  }
});

test("lines stand out from the ground in both schemes", () => {
  for (const [scheme, ground] of [["light", "#eef1f0"], ["dark", "#1b1f22"]] as const) {
    for (let c = 0; c < classes; c++) expect(contrast(styleOf(c, scheme).colour, ground)).toBeGreaterThan(3);
  }
});

test("the legend says which values a class has", () => {
  expect([-1, 0, 2, 4].map((c) => classLabel("sinr", c))).toEqual(["not known", "below 0 dB", "5 to 10 dB", "20 dB and more"]);
});

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
