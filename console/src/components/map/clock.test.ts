import { act, renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import { useNow } from "../../app/clock";
import { learnTime } from "../../kubernetes/time";
import { useMapClock } from "./clock";

test("a live map, and the time since T0, follow the cluster's clock where the browser's is off", async () => {
  const now = Date.now();
  learnTime(new Date(now + 180_000).toUTCString(), now, now);
  const { result } = renderHook(() => useMapClock({ t0: now, live: true, duration: 600, map: { current: null } }));
  expect(Math.abs(result.current.at - 180)).toBeLessThan(60);
  const time = renderHook(() => useNow());
  await act(() => new Promise((done) => setTimeout(done, 1100)));
  expect(Math.abs(time.result.current - now - 180_000)).toBeLessThan(60_000);
});
