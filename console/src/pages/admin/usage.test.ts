// @vitest-environment node
import { expect, test } from "vitest";
import { keptFor, usageRoom, volumeRoom } from "./usage";

const gib = 2 ** 30;

test("the room of a namespace in the archive says what its quota leaves", () => {
  expect(usageRoom({ namespace: "nor", runs: 2, bytes: gib, quotaBytes: 4 * gib })).toEqual({ label: "Used", percent: 25, text: "3.00 GiB free of 4.00 GiB" });
});

test("a full part of the archive says what follows", () => {
  expect(usageRoom({ namespace: "nor", runs: 2, bytes: 5 * gib, quotaBytes: 4 * gib })).toMatchObject({ percent: 100, text: "full: no run begins before some are deleted (4.00 GiB)" });
});

test("without a quota there is no share of it", () => {
  expect(usageRoom({ namespace: "nor", runs: 0, bytes: 0 })).toBeUndefined();
});

test("the room of the volume is shown where it is less than the quota's", () => {
  const room = (given: { freeBytes?: number; quotaBytes?: number }) => volumeRoom({ namespace: "nor", runs: 2, bytes: gib, ...given });
  const text = "the volume has room for 1.00 GiB of logs of all teams";
  expect([room({ freeBytes: gib, quotaBytes: 4 * gib }), room({ freeBytes: gib }), room({ freeBytes: 3 * gib, quotaBytes: 4 * gib }), room({})]).toEqual([text, text, undefined, undefined]);
});

test("runs are kept for days, or without an end", () => {
  expect([keptFor({ namespace: "nor", runs: 0, bytes: 0, retentionSeconds: 31_536_000 }), keptFor({ namespace: "nor", runs: 0, bytes: 0 })]).toEqual(["365d00h", "as long as there is room"]);
});
