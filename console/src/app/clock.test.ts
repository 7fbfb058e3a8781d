import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useNow } from "./clock";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("a page that shows the time begins with the present one, however long no page has shown it", () => {
  renderHook(useNow).unmount();
  vi.advanceTimersByTime(143_000);
  const seen: number[] = [];
  renderHook(() => {
    seen.push(useNow());
  });
  expect(seen[0]).toBe(Date.now());
});

test("the time stays the same within a second, and then advances", () => {
  const { result } = renderHook(useNow);
  const first = result.current;
  act(() => {
    vi.advanceTimersByTime(999);
  });
  expect(result.current).toBe(first);
  act(() => {
    vi.advanceTimersByTime(1);
  });
  expect(result.current).toBeGreaterThan(first);
});
