// @vitest-environment node
import { expect, test, vi } from "vitest";
import { marksOf, timesShown } from "./Chart";

vi.mock("uplot", () => ({ default: {} })); // it needs a browser

test("an axis of times has a minute at least, also for a single value", () => {
  expect([[], [100], [100, 130], [100, 300]].map(timesShown)).toEqual([undefined, [100, 160], [100, 160], [100, 300]]);
});

test("marks of an axis differ, also within a minute that is hours after T0", () => {
  expect(marksOf([3660, 7200], 0)).toEqual(["+1h01m", "+2h00m"]);
  expect(marksOf([3600, 3615, 3665], 0)).toEqual(["+1h00m00s", "+1h00m15s", "+1h01m05s"]);
  expect(marksOf([172_800, 172_815], 0)).toEqual(["+48h00m00s", "+48h00m15s"]);
  expect(marksOf([-10, 45, 125], 0)).toEqual(["-10s", "+45s", "+2m05s"]);
});
