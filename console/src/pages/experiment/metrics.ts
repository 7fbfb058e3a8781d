import { useQuery } from "@tanstack/react-query";
import { archivePath } from "../../archive/client";
import { askAgainAfter } from "../../archive/polling";
import { parseMetrics, type Series } from "../../archive/prometheus";
import { ask, unbroken } from "../../kubernetes/client";
import { clusterTime } from "../../kubernetes/time";
import type { Experiment } from "../../types";
import { isOver } from "./state";

const prefix = "vignette_experiment_";

/** Shares of a run's nodes, and the content that its apps have sent. */
export interface NodeFigures {
  /** contentBytes that all apps have sent. */
  contentBytes: number;
  /** receivers, the one that misses most first. */
  receivers: { node: string; offered: number; received: number }[];
}

/** figuresOf the series of one run. */
export function figuresOf(series: Series[]): NodeFigures {
  const offered = new Map<string, number>();
  const received = new Map<string, number>();
  let contentBytes = 0;
  for (const { name, labels, value } of series) {
    const node = labels.node ?? "";
    if (name === `${prefix}sender_content_bytes_total`) contentBytes += value;
    else if (name === `${prefix}receiver_deliveries_offered`) offered.set(node, value);
    else if (name === `${prefix}receiver_deliveries_received`) received.set(node, value);
  }
  const receivers = [...offered].map(([node, of]) => ({ node, offered: of, received: received.get(node) ?? 0 }));
  receivers.sort((a, b) => share(a) - share(b) || b.offered - a.offered || a.node.localeCompare(b.node));
  return { contentBytes, receivers };
}

function share({ offered, received }: { offered: number; received: number }): number {
  return offered === 0 ? 1 : received / offered;
}

/** useNodeFigures reads the series of a run every 10 s. */
export function useNodeFigures(e: Experiment) {
  const namespace = e.metadata.namespace ?? "";
  const uid = e.metadata.uid ?? "";
  return useQuery({
    queryKey: ["run", uid, "metrics"],
    queryFn: async ({ signal }) => {
      const answer = await ask(archivePath(namespace, `/metrics?namespace=${encodeURIComponent(namespace)}&run=${encodeURIComponent(uid)}`), { signal });
      const figures = figuresOf(parseMetrics(await unbroken(answer.text()), (line) => line.startsWith(`${prefix}sender_content`) || line.startsWith(`${prefix}receiver_deliveries`)));
      return { ...figures, at: clusterTime() / 1000 };
    },
    enabled: Boolean(e.status?.t0) && !isOver(e),
    refetchInterval: ({ state }) => askAgainAfter(state.error, 10_000),
  });
}
