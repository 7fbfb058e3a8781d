import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { router } from "./router";
import { answer } from "./testing/page";

afterEach(() => {
  vi.unstubAllGlobals();
});

test("an address without a page says so, and leads to the experiments", async () => {
  answer({ "/session": { mode: "local", user: "ann", groups: [], namespace: "team" } });
  vi.stubGlobal("scrollTo", () => undefined);
  router.update({ history: createMemoryHistory({ initialEntries: ["/ns/team/experiments/"] }) } as never);
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(await screen.findByRole("heading", { name: "There is no page at this address" })).toBeTruthy();
  expect(screen.getByRole("link", { name: "experiments" }).getAttribute("href")).toBe("/");
});
