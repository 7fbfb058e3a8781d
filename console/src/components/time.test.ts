// @vitest-environment node
import { expect, test } from "vitest";
import { afterT0, fromT0, secondsOf, span, utc } from "./time";

test("spans are written as people say them", () => {
  expect([0, 0.4, 45, 59.6, 125, 3720, 200_000, -5].map(span)).toEqual(["0s", "0s", "45s", "1m00s", "2m05s", "1h02m", "2d07h", "-5s"]);
});

test("a time is read in UTC and from T0", () => {
  const t0 = new Date("2026-11-27T07:24:18.065Z");
  expect(utc(t0)).toBe("2026-11-27 07:24:18Z");
  expect(fromT0(new Date("2026-11-27T07:26:23.065Z"), t0)).toBe("T0+2m05s");
  expect(fromT0(new Date("2026-11-27T07:24:08.065Z"), t0)).toBe("T0-10s");
  expect([afterT0(125), afterT0(-10)]).toEqual(["T0+2m05s", "T0-10s"]);
});

test("durations of Kubernetes are read, and nothing else", () => {
  expect(["1h2m3.5s", "100ms", "0", "1m"].map(secondsOf)).toEqual([3723.5, 0.1, 0, 60]);
  expect(["", "5", "1x", "-1s"].map(secondsOf)).toEqual([NaN, NaN, NaN, NaN]);
});
