import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { render, screen, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { answer } from "./testing/page";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const session = { mode: "local", user: "ann", groups: [], namespace: "team" };

async function openAt(address: string) {
  vi.stubGlobal("scrollTo", () => undefined);
  vi.resetModules(); // a router is made with its module, and keeps where it was
  const { router } = await import("./router");
  router.update({ history: createMemoryHistory({ initialEntries: [address] }) } as never);
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>,
  );
}

test("an address without a page says so, and leads to the experiments", async () => {
  answer({ "/session": session });
  await openAt("/ns/team/experiments/");
  expect(await screen.findByRole("heading", { name: "There is no page at this address" })).toBeTruthy();
  expect(screen.getByRole("link", { name: "experiments" }).getAttribute("href")).toBe("/");
});

test("a page that fails leaves the sections beside it", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  answer({ "/session": session, "/library": "{}" });
  await openAt("/new");
  expect(await screen.findByRole("heading", { name: "This page failed" })).toBeTruthy();
  expect(within(screen.getByRole("navigation", { name: "Sections" })).getByRole("link", { name: "Experiments" })).toBeTruthy();
});
