import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRootRoute, createRoute, createRouter, Outlet, RouterProvider } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { vi } from "vitest";
import { writeSearch } from "../components/address";
import "./patience";

/** openPage renders a page at an address. It returns the router, which has the address that the page changes. */
export function openPage(path: string, component: () => ReactNode, address: string) {
  const root = createRootRoute({ component: Outlet });
  const routes = [createRoute({ getParentRoute: () => root, path, component }), createRoute({ getParentRoute: () => root, path: "$", component: () => null })];
  const router = createRouter({ routeTree: root.addChildren(routes), stringifySearch: writeSearch, history: createMemoryHistory({ initialEntries: [address] }) });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <RouterProvider router={router as never} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return router;
}

/** answer requests by the end of their path, before the parameters: with an object as JSON, or a text as it is. */
export function answer(answers: Record<string, unknown>): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (request: string) => {
    asked.push(request);
    const [path = ""] = request.split("?");
    const found = Object.entries(answers).find(([end]) => path.endsWith(end));
    if (!found) return Promise.resolve(new Response(JSON.stringify({ error: `nothing at ${path}` }), { status: 404 }));
    return Promise.resolve(new Response(typeof found[1] === "string" ? found[1] : JSON.stringify(found[1])));
  });
  return asked;
}
