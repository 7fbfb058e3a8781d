import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import "../testing/patience";
import { isNamespace, namespacesOf, useFirstNamespace, useScope } from "./scope";

afterEach(() => {
  vi.unstubAllGlobals();
  window.localStorage.clear();
});

/** open the console as a user who may list experiments in some namespaces. The empty one is all. */
function open(mode: "local" | "team", user: string, ...listed: string[]) {
  vi.stubGlobal("fetch", (path: string, init?: RequestInit) => {
    if (path.endsWith("/session")) return Promise.resolve(Response.json({ mode, user, groups: [], namespace: "default" }));
    const { spec } = JSON.parse(init?.body as string) as { spec: { resourceAttributes: { namespace?: string } } };
    return Promise.resolve(Response.json({ status: { allowed: listed.includes(spec.resourceAttributes.namespace ?? "") } }));
  });
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const wrapper = ({ children }: { children: React.ReactNode }) => <QueryClientProvider client={queries}>{children}</QueryClientProvider>;
  return renderHook(() => ({ ...useScope(), first: useFirstNamespace() }), { wrapper }).result;
}

async function known(scope: ReturnType<typeof open>) {
  await waitFor(() => {
    expect(scope.current.known).toBe(true);
  });
}

test("who may list all namespaces needs to name none", async () => {
  const scope = open("team", "anna", "", "default");
  await known(scope);
  expect(scope.current.namespaces).toBeUndefined();
});

test.each([
  ["a kubeconfig's namespace is shown, also where it is refused", "local" as const, [], ["default"]],
  ["the namespace of a team's console is shown to whoever may list it", "team" as const, ["default"], ["default"]],
  ["the namespace of a team's console is not shown to others", "team" as const, [], []],
])("%s", async (_, mode, listed, shown) => {
  const scope = open(mode, "anna", ...listed);
  await known(scope);
  expect(scope.current.namespaces).toEqual(shown);
});

test("a user's namespaces are remembered until another user logs in", async () => {
  let annas = open("team", "anna");
  await known(annas);
  act(() => {
    annas.current.remember("team-alpha");
  });
  expect(annas.current.namespaces).toEqual(["team-alpha"]);
  cleanup();
  annas = open("team", "anna");
  await known(annas);
  expect(annas.current.namespaces).toEqual(["team-alpha"]);
  await waitFor(() => {
    expect(annas.current.first).toBe("team-alpha");
  });
  cleanup();
  const berts = open("team", "bert");
  await known(berts);
  expect(berts.current.namespaces).toEqual([]);
  expect(berts.current.first).toBe("default");
  cleanup();
  const again = open("team", "anna");
  await known(again);
  expect(again.current.namespaces).toEqual([]);
});

test("the namespaces of a user are those he named, once each", () => {
  expect(namespacesOf("nor", undefined, "prt", "nor", "")).toEqual(["nor", "prt"]);
});

test("what cannot be a namespace is not asked for", () => {
  expect([isNamespace("team-nor"), isNamespace("Team"), isNamespace("a/b"), isNamespace("")]).toEqual([true, false, false, false]);
});
