import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Shell } from "./app/Shell";
import { writeSearch } from "./components/address";
import { ErrorPage, NoPage } from "./components/ErrorPage";

const root = createRootRoute({ component: Shell, notFoundComponent: NoPage });

// A page is loaded when it is opened for the first time.
const pages = [
  createRoute({ getParentRoute: () => root, path: "/", component: lazyRouteComponent(() => import("./pages/home/Home"), "Home") }),
  createRoute({ getParentRoute: () => root, path: "/runs", component: lazyRouteComponent(() => import("./pages/runs/Runs"), "Runs") }),
  createRoute({ getParentRoute: () => root, path: "/ns/$namespace/experiments/$name", component: lazyRouteComponent(() => import("./pages/experiment/Experiment"), "Experiment") }),
  createRoute({ getParentRoute: () => root, path: "/ns/$namespace/runs/$uid", component: lazyRouteComponent(() => import("./pages/results/Results"), "Results") }),
  createRoute({ getParentRoute: () => root, path: "/ns/$namespace/campaigns/$name", component: lazyRouteComponent(() => import("./pages/campaign/Campaign"), "Campaign") }),
  createRoute({ getParentRoute: () => root, path: "/compare", component: lazyRouteComponent(() => import("./pages/compare/Compare"), "Compare") }),
  createRoute({ getParentRoute: () => root, path: "/new", component: lazyRouteComponent(() => import("./pages/make/Make"), "Make") }),
  createRoute({ getParentRoute: () => root, path: "/scenarios/edit", component: lazyRouteComponent(() => import("./pages/scenario/ScenarioEditor"), "ScenarioEditor") }),
  createRoute({ getParentRoute: () => root, path: "/admin", component: lazyRouteComponent(() => import("./pages/admin/Admin"), "Admin") }),
] as const;

export const router = createRouter({ routeTree: root.addChildren([...pages]), stringifySearch: writeSearch, defaultErrorComponent: ErrorPage, defaultPreload: "intent", scrollRestoration: true });

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
