// A Date has whole seconds and the network takes time: a difference this small may be none.
const toleranceMilliseconds = 1000;

let offset = 0;
const listeners = new Set<() => void>();

/** learnTime from the Date of an answer of the cluster, which was written between two times of the browser's clock. */
export function learnTime(date: string | null, asked: number, answered: number): void {
  const written = Date.parse(date ?? "");
  if (Number.isNaN(written)) return;
  const least = written - answered;
  const most = written + 1000 - asked;
  if (offset >= least - toleranceMilliseconds && offset <= most + toleranceMilliseconds) return;
  offset = Math.round((least + most) / 2);
  for (const listener of listeners) listener();
}

/** clockOffset in milliseconds is by how much the cluster's clock is ahead of the browser's. T0 is a time of the cluster. */
export function clockOffset(): number {
  return offset;
}

/** clusterTime is the time of the cluster's clock in Unix milliseconds. */
export function clusterTime(): number {
  return Date.now() + offset;
}

/** onClockOffset calls the listener whenever the offset changes, until the returned function is called. */
export function onClockOffset(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}
