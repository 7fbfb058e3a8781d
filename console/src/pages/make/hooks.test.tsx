import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, test, vi } from "vitest";
import "../../testing/patience";
import { useForecast } from "./hooks";

test("the forecast of the text before is not taken for that of the present one", async () => {
  vi.stubGlobal("fetch", (_: string, { body }: { body: string }) => Promise.resolve(new Response(JSON.stringify({ pods: body.length }))));
  const client = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => <QueryClientProvider client={client}>{children}</QueryClientProvider>;
  const { result, rerender } = renderHook(({ text }) => useForecast(text, "team", true), { wrapper, initialProps: { text: "a" } });
  expect(result.current).toMatchObject({ forecast: undefined, fresh: false });
  await waitFor(() => { expect(result.current).toMatchObject({ forecast: { pods: 1 }, fresh: true }); });
  rerender({ text: "ab" });
  expect(result.current).toMatchObject({ forecast: { pods: 1 }, fresh: false });
  await waitFor(() => { expect(result.current).toMatchObject({ forecast: { pods: 2 }, fresh: true }); });
});
