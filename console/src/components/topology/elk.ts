import ELK from "elkjs/lib/elk-api.js";
import workerURL from "elkjs/lib/elk-worker.min.js?url";
import type { Topology } from "./graph";
import { fromElk, toElk, type Layout } from "./layout";

let elk: InstanceType<typeof ELK> | undefined;

/** layOut computes the places of a topology's elements in a worker, so that the page stays responsive. */
export async function layOut(topology: Topology): Promise<Layout> {
  elk ??= new ELK({ workerFactory: () => new Worker(workerURL) });
  return fromElk(await elk.layout(toElk(topology)), topology);
}
