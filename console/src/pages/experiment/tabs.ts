import { lazy, type ComponentType } from "react";
import type { TabProps } from "./tab";

export interface Tab {
  /** name in the URL. */
  name: string;
  label: string;
  part: ComponentType<TabProps>;
}

/** tabs of the page, in order. Each is loaded when it is opened for the first time. */
export const tabs: readonly [Tab, ...Tab[]] = [
  { name: "overview", label: "Overview", part: lazy(() => import("./OverviewTab")) },
  { name: "nodes", label: "Nodes", part: lazy(() => import("./NodesTab")) },
  { name: "map", label: "Map", part: lazy(async () => ({ default: (await import("./MapTab")).MapTab })) },
  { name: "topology", label: "Topology", part: lazy(() => import("./TopologyTab")) },
  { name: "live", label: "Live", part: lazy(() => import("./LiveTab")) },
  { name: "events", label: "Events", part: lazy(() => import("./EventsTab")) },
  { name: "logs", label: "Logs", part: lazy(() => import("./LogsTab")) },
  { name: "terminal", label: "Terminal", part: lazy(() => import("./TerminalTab")) },
  { name: "captures", label: "Captures", part: lazy(() => import("./CapturesTab")) },
];

/** tabOf a name from the URL; the first if there is none of that name. */
export function tabOf(name: unknown): Tab {
  return tabs.find((tab) => tab.name === name) ?? tabs[0];
}
