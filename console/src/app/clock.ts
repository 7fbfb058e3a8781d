import { useSyncExternalStore } from "react";
import { clockOffset, clusterTime, onClockOffset } from "../kubernetes/time";

const listeners = new Set<() => void>();
let now = clusterTime();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = clusterTime();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** useNow returns the cluster's time in Unix milliseconds, which advances once a second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, present);
}

// Without a page that shows it, nothing has kept the time up to date.
function present(): number {
  if (timer === undefined && Math.abs(clusterTime() - now) >= 1000) now = clusterTime();
  return now;
}

/** useClockOffset returns by how many milliseconds the cluster's clock is ahead of the browser's. */
export function useClockOffset(): number {
  return useSyncExternalStore(onClockOffset, clockOffset);
}
