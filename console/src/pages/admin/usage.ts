import type { Room } from "../../components/capacity/capacity";
import { binarySize } from "../../components/figures";
import { span } from "../../components/time";

/** Usage of the archive by a namespace. */
export interface Usage {
  namespace: string;
  runs: number;
  bytes: number;
  /** 0 or absent for no quota. */
  quotaBytes?: number;
  /** Of the volume, for logs of all namespaces; absent if it does not say. */
  freeBytes?: number;
  retentionSeconds?: number;
}

/** usageRoom of a namespace with a quota. */
export function usageRoom({ bytes, quotaBytes }: Usage): Room | undefined {
  if (!quotaBytes) return undefined;
  const text = bytes >= quotaBytes ? `full: no run begins before some are deleted (${binarySize(quotaBytes)})` : `${binarySize(quotaBytes - bytes)} free of ${binarySize(quotaBytes)}`;
  return { label: "Used", percent: Math.min(100, (100 * bytes) / quotaBytes), text };
}

/** volumeRoom is what the volume has for all, where that is less than the quota leaves. */
export function volumeRoom({ bytes, quotaBytes, freeBytes }: Usage): string | undefined {
  if (freeBytes === undefined || (quotaBytes && freeBytes >= quotaBytes - bytes)) return undefined;
  return `the volume has room for ${binarySize(freeBytes)} of logs of all teams`;
}

/** keptFor is how long a run is kept after it ended. */
export function keptFor({ retentionSeconds }: Usage): string {
  return retentionSeconds ? span(retentionSeconds) : "as long as there is room";
}
