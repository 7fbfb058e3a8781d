// @vitest-environment node
import { expect, test } from "vitest";
import { secondsTyped } from "./plan";
import { fromSeconds } from "./times";

test("a time can be typed again as it is written", () => {
  const times = [0, 45, 90, 3605, 12.5, 7384.25];
  expect(times.map(fromSeconds)).toEqual(["0s", "45s", "1m30s", "1h0m5s", "12.5s", "2h3m4.25s"]);
  expect(times.map(fromSeconds).map(secondsTyped)).toEqual(times);
});
