import type { RunSummary } from "../../archive/types";

/** pickable are the runs that can have results and have all the searched words. */
export function pickable(runs: readonly RunSummary[], search: string): RunSummary[] {
  const words = search.toLowerCase().split(" ").filter(Boolean);
  return runs.filter(({ phase, name, namespace, uid, campaign }) => {
    const text = `${name} ${namespace} ${uid} ${campaign?.name ?? ""} ${Object.values(campaign?.levels ?? {}).join(" ")}`.toLowerCase();
    return phase === "Succeeded" && words.every((word) => text.includes(word));
  });
}
