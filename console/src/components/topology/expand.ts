import type { Experiment } from "../../types";

/** A node of an experiment, one for each of a node's count. */
export interface ExpandedNode {
  name: string;
  group: string;
  nem: number;
  networks: string[];
  apps: string[];
  isVM: boolean;
}

/** expandNodes of a spec, with the names and NEM ids that they will have, as in internal/core/topology. */
export function expandNodes(spec: Pick<Experiment["spec"], "nodes">): ExpandedNode[] {
  const expanded: ExpandedNode[] = [];
  for (const node of spec.nodes) {
    for (let i = 0; i < (node.count ?? 1); i++) {
      expanded.push({
        name: node.count === undefined ? node.name : `${node.name}-${i + 1}`,
        group: node.group ?? node.name,
        nem: node.nem === undefined ? expanded.length + 1 : node.nem + i,
        networks: node.networks ?? [],
        apps: node.apps ?? [],
        isVM: node.runtime === "vm",
      });
    }
  }
  return expanded;
}
