import ELK, { type ElkNode } from "elkjs/lib/elk-api.js";
import workerURL from "elkjs/lib/elk-worker.min.js?url";
import type { Topology } from "./graph";
import { fromElk, toElk, type Layout } from "./layout";

let elk: InstanceType<typeof ELK> | undefined;

/** layOutGraph computes the places of a graph's elements in a worker, so that the page stays responsive. */
export function layOutGraph(graph: ElkNode): Promise<ElkNode> {
  elk ??= new ELK({ workerFactory: () => new Worker(workerURL) });
  return elk.layout(graph);
}

/** layOut computes the places of a topology's elements. */
export async function layOut(topology: Topology): Promise<Layout> {
  return fromElk(await layOutGraph(toElk(topology)), topology);
}
