// @vitest-environment node
import { expect, test } from "vitest";
import { atMostThreeDigits, bytes, bytesPerSecond, count, duration, binarySize, many, metres, percent, probability, range, runSize, tickDuration } from "./figures";

test("times have three digits in the unit that suits them", () => {
  expect([1.44936, 0.0123456, 0.000_83, 73.122, 460.15, 0, -0.2, 0.99999, null].map(duration)).toEqual(["1.45 s", "12.3 ms", "830 µs", "73.1 s", "460 s", "0 s", "-200 ms", "1.00 s", "–"]);
});

test("distances have three digits, and all metres", () => {
  expect([88.956, 1234.5, 0.04, 0, null].map(metres)).toEqual(["89.0 m", "1235 m", "0.0400 m", "0 m", "–"]);
});

test("a share is never rounded to all or nothing", () => {
  expect([100, 99.999, 99.5, 0.0001, 0, undefined].map(percent)).toEqual(["100 %", "> 99.99 %", "99.5 %", "< 0.01 %", "0 %", "–"]);
});

test("counts, sizes and rates are read at a glance", () => {
  expect([7, 1234567].map(count)).toEqual(["7", "1\u202f234\u202f567"]);
  expect([0, 999, 1250, 2.5e9].map(bytes)).toEqual(["0 B", "999 B", "1.25 kB", "2.50 GB"]);
  expect([434.07, 12_500].map(bytesPerSecond)).toEqual(["434 B/s", "12.5 kB/s"]);
  expect([many(1, "run"), many(3, "run")]).toEqual(["1 run", "3 runs"]);
});

test("an interval and a p value say when there are none", () => {
  expect(range({ low: 1, high: 2.5 }, percent)).toBe("[1 %, 2.5 %]");
  expect(range(null, percent)).toBe("");
  expect([probability(0.0004), probability(0.0978), probability(null, true), probability(null)]).toEqual(["< 0.001", "0.098", "too few", "–"]);
});

test("marks of an axis differ from each other", () => {
  const write = tickDuration(1.45, 1.51);
  const marks = [1.45, 1.455, 1.46, 1.465].map(write);
  expect(new Set(marks).size).toBe(marks.length);
  expect(tickDuration(0, 0.02)(0.005)).toBe("5 ms");
});

test("memory is in binary units, and never less than it is", () => {
  expect([0, 1, 700 * 2 ** 10, 2 ** 20, 512 * 2 ** 20, 1.5 * 2 ** 30, 16 * 2 ** 30, 1.5 * 2 ** 40].map(binarySize)).toEqual(["0.00 GiB", "1 KiB", "700 KiB", "1 MiB", "512 MiB", "1.50 GiB", "16 GiB", "1.50 TiB"]);
});

test("marks of an axis have no zeros at their end", () => {
  expect([0, 10, 0.25, 1234, NaN].map(atMostThreeDigits)).toEqual(["0", "10", "0.25", "1230", "–"]);
});

test("the size of a run is written as by the commands", () => {
  expect([undefined, 700, 2 ** 20, 1_234_567, 1.5 * 2 ** 30].map(runSize)).toEqual(["–", "0.68 KiB", "1.00 MiB", "1.18 MiB", "1.50 GiB"]);
});
