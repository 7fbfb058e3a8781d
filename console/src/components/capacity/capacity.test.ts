// @vitest-environment node
import { expect, test } from "vitest";
import { amountOf, quotaRoom, requestedText, roomsOf } from "./capacity";

const gib = 2 ** 30;

test("the room of the cluster says what is free of what", () => {
  const rooms = roomsOf({ name: "all", usable: true, allocatable: { cpu: 8, memoryBytes: 16 * gib, pods: 300 }, free: { cpu: 6, memoryBytes: 4 * gib, pods: 297 } });
  expect(rooms).toEqual([
    { label: "Cores", percent: 25, text: "6 free of 8" },
    { label: "Memory", percent: 75, text: "4.00 GiB free of 16 GiB" },
    { label: "Pods", percent: 1, text: "297 free of 300" },
  ]);
});

test("who may not read pods sees how much there is, and no use", () => {
  const rooms = roomsOf({ name: "all", usable: true, allocatable: { cpu: 8, memoryBytes: 16 * gib, pods: 300 } });
  expect(rooms[0]).toEqual({ label: "Cores", percent: 0, text: "8 in all" });
  expect(requestedText(undefined)).toBe("not shown");
});

test("an overcommitted host is full, not more", () => {
  const [cores] = roomsOf({ name: "a", usable: true, allocatable: { cpu: 2, memoryBytes: gib, pods: 1 }, free: { cpu: -1, memoryBytes: 0, pods: 0 } });
  expect(cores?.percent).toBe(100);
});

test("a quota of memory is shown in GiB, whatever its units", () => {
  expect(quotaRoom({ name: "team", resource: "requests.memory", hard: "8Gi", used: "1536Mi", free: "6656Mi" })).toEqual({ label: "requests.memory", percent: 18.75, text: "6.50 GiB free of 8.00 GiB" });
});

test("a quota of pods is shown as it is", () => {
  expect(quotaRoom({ name: "team", resource: "pods", hard: "30", used: "27", free: "3" })).toEqual({ label: "pods", percent: 90, text: "3 free of 30" });
});

test.each([["250m", 0.25], ["2", 2], ["1e3", 1000], ["3Gi", 3 * gib], ["5M", 5e6]])("%s is %d", (text, amount) => {
  expect(amountOf(text)).toBe(amount);
});

test("what is no quantity is no number", () => {
  expect(amountOf("much")).toBeNaN();
});
