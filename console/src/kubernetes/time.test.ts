// @vitest-environment node
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ask } from "./client";
import { clockOffset, clusterTime, learnTime, onClockOffset } from "./time";

const now = Date.parse("2026-01-02T03:04:05Z");

beforeEach(() => {
  vi.useFakeTimers({ now });
  learnTime(new Date(now).toUTCString(), now, now);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function answerAt(cluster: number, status = 200) {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { status, headers: { date: new Date(cluster).toUTCString() } })));
}

test("the time is the cluster's, as an answer of the API server has it", async () => {
  const listener = vi.fn();
  const end = onClockOffset(listener);
  answerAt(now + 180_000);
  await ask("/k8s/api/v1/pods");
  end();
  expect(Math.abs(clusterTime() - now - 180_000)).toBeLessThan(1000);
  expect(listener).toHaveBeenCalledOnce();
});

test("an answer of the console, or an error, says nothing of the cluster's clock", async () => {
  answerAt(now + 180_000);
  await ask("/console/v1/capacity");
  answerAt(now + 180_000, 502);
  await ask("/k8s/api/v1/pods").catch(() => undefined);
  expect(Math.abs(clockOffset())).toBeLessThan(2000);
});

test("whole seconds and slow answers leave a clock alone that may be right", () => {
  const before = clockOffset();
  learnTime(new Date(now + 1000).toUTCString(), now, now);
  learnTime(new Date(now + 50_000).toUTCString(), now, now + 60_000);
  learnTime(null, now, now);
  learnTime("no time", now, now);
  expect(clockOffset()).toBe(before);
});
