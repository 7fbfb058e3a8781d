import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import "../testing/patience";
import { useRight } from "./hooks";

afterEach(() => {
  vi.unstubAllGlobals();
});

function ask(status: number, body: object) {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(JSON.stringify(body), { status })));
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const wrapper = ({ children }: { children: React.ReactNode }) => <QueryClientProvider client={queries}>{children}</QueryClientProvider>;
  return renderHook(() => useRight({ verb: "list", group: "", resource: "nodes" }), { wrapper }).result;
}

test.each([true, false])("a right is %s as Kubernetes says", async (allowed) => {
  const right = ask(201, { status: { allowed } });
  await waitFor(() => {
    expect(right.current).toEqual({ allowed, error: null });
  });
});

test("a right that cannot be asked for says why", async () => {
  const right = ask(502, { error: "the API server does not answer" });
  await waitFor(() => {
    expect(right.current.error?.message).toBe("the API server does not answer");
  });
  expect(right.current.allowed).toBeUndefined();
});
