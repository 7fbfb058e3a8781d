import { queryOptions } from "@tanstack/react-query";
import { askJSON } from "../../kubernetes/client";
import type { components } from "../../types/console.gen";
import { binarySize } from "../figures";

type Schemas = components["schemas"];

export type Amounts = Schemas["Amounts"];
export type Host = Schemas["Host"];
export type Quota = Schemas["Quota"];
export type Team = Schemas["Team"];
export type Queued = Schemas["Queued"];
/** Capacity is what `vignette capacity -o json` prints to the same user. */
export type Capacity = Schemas["Report"];

const refetchMilliseconds = 15_000;

/** capacityQuery asks for the capacity of the cluster, and for the archive's room of a namespace. */
export function capacityQuery(namespace?: string) {
  return queryOptions({
    queryKey: ["capacity", namespace ?? ""],
    queryFn: ({ signal }) => askJSON<Capacity>(`/console/v1/capacity${namespace ? `?namespace=${encodeURIComponent(namespace)}` : ""}`, { signal }),
    refetchInterval: refetchMilliseconds,
  });
}

/** Room is how much of something is used, with words for it. */
export interface Room {
  label: string;
  /** used of all, in percent. */
  percent: number;
  text: string;
}

const kinds = [
  { label: "Cores", of: (a: Amounts) => a.cpu, text: (n: number) => figure(n) },
  { label: "Memory", of: (a: Amounts) => a.memoryBytes, text: binarySize },
  { label: "Pods", of: (a: Amounts) => a.pods, text: (n: number) => figure(n) },
] as const;

/** roomsOf a host, or of all: what pods have requested of its cores, memory and pods. */
export function roomsOf(host: Host): Room[] {
  return kinds.map(({ label, of, text }) => {
    const all = of(host.allocatable);
    if (!host.free) return { label, percent: 0, text: `${text(all)} in all` };
    const free = of(host.free);
    return { label, percent: percentOf(all - free, all), text: `${text(free)} free of ${text(all)}` };
  });
}

function percentOf(used: number, all: number): number {
  return all > 0 ? Math.min(100, Math.max(0, (100 * used) / all)) : 0;
}

/** requestedText is what the pods of a team request. */
export function requestedText(a: Amounts | undefined): string {
  if (!a) return "not shown";
  return `${figure(a.cpu)} cores, ${binarySize(a.memoryBytes)}, ${figure(a.pods)} ${a.pods === 1 ? "pod" : "pods"}`;
}

/** quotaRoom is how much of a quota is used. */
export function quotaRoom(quota: Quota): Room {
  const [used, hard] = [amountOf(quota.used), amountOf(quota.hard)];
  const text = isBytes(quota.resource) ? `${binarySize(amountOf(quota.free))} free of ${binarySize(hard)}` : `${quota.free} free of ${quota.hard}`;
  return { label: quota.resource, percent: percentOf(used, hard), text };
}

function isBytes(resource: string): boolean {
  return resource.endsWith("memory") || resource.endsWith("storage");
}

const units: Record<string, number> = { "": 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };

/** amountOf a quantity of Kubernetes, such as 250m or 8Gi; NaN if it is none. */
export function amountOf(quantity: string): number {
  const [, amount, unit] = /^([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)([a-zA-Z]*)$/.exec(quantity) ?? [];
  return amount === undefined ? NaN : Number(amount) * (units[unit ?? ""] ?? NaN);
}

function figure(n: number): string {
  return String(Math.round(100 * n) / 100);
}
