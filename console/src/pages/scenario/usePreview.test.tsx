import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Question } from "./question";
import { usePreview } from "./usePreview";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** serve answers each question with its own text, after some milliseconds. */
function serve(milliseconds: number): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (_: string, { body }: { body: string }) => {
    asked.push(body);
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    return new Response(JSON.stringify({ warnings: [body] }));
  });
  return asked;
}

const pause = (milliseconds: number) => act(() => vi.advanceTimersByTimeAsync(milliseconds));

const questionOf = (place: number): Question => ({ text: `place ${place}`, query: { at: 0, limit: 121, pair: undefined } });

test("what is dragged is previewed on the way, one question at a time, and its last place in the end", async () => {
  const asked = serve(30);
  const client = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => <QueryClientProvider client={client}>{children}</QueryClientProvider>;
  const { result, rerender } = renderHook(usePreview, { wrapper, initialProps: questionOf(0) });
  for (let place = 1; place <= 40; place++) {
    rerender(questionOf(place));
    await pause(20);
  }
  // 800 ms of dragging have a question each 150 ms and its answer.
  expect(asked.length).toBeGreaterThan(3);
  expect(asked.length).toBeLessThan(7);
  await pause(2000);
  expect(result.current.data?.warnings).toEqual(["place 40"]);
  expect(asked.at(-1)).toBe("place 40");
});
