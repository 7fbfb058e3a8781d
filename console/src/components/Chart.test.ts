// @vitest-environment node
import { expect, test, vi } from "vitest";
import { timesShown } from "./Chart";

vi.mock("uplot", () => ({ default: {} })); // it needs a browser

test("an axis of times has a minute at least, also for a single value", () => {
  expect([[], [100], [100, 130], [100, 300]].map(timesShown)).toEqual([undefined, [100, 160], [100, 160], [100, 300]]);
});
