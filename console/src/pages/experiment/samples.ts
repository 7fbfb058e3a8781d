import { tabStorage } from "../../app/tab";
import type { RunState } from "../../archive/types";

/** Sample has the figures of a run at a time. Unknown ones are null, which charts leave out. */
export interface Sample {
  /** at in Unix seconds. */
  at: number;
  deliveredPercent: number | null;
  median: number | null;
  p95: number | null;
  queue: number | null;
  /** sentPerSecond and receivedPerSecond messages since the sample before. */
  sentPerSecond: number | null;
  receivedPerSecond: number | null;
  /** volume that radios took from nodes since the sample before, in bytes a second by network. */
  volume: Readonly<Record<string, number>>;
}

// Two hours of samples, one each 2 s.
const kept = 3600;
// The browser keeps fewer over a reload.
const keptOverReload = 900;
const saveEveryMilliseconds = 10_000;
// A pause this long, such as that of a hidden page, is drawn as one.
const pauseSeconds = 30;

const names = ["at", "deliveredPercent", "median", "p95", "queue", "sentPerSecond", "receivedPerSecond"] as const;

/** Samples of one run, of which the newest are kept. */
export class Samples {
  private list: Sample[] = [];
  private totals: { at: number; sent: number; received: number; bytes: Record<string, number> } | undefined;
  private savedAt = 0;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly key: string,
    private readonly storage: Pick<Storage, "getItem" | "setItem"> | undefined,
    private readonly most = kept,
  ) {
    this.list = restored(storage, key);
  }

  /** add the state of a run at the time of its answer, in Unix milliseconds of the cluster. The same answer again adds nothing. */
  add(milliseconds: number, state: RunState): void {
    const at = milliseconds / 1000;
    const last = this.list.at(-1);
    if (last && at <= last.at) return;
    const { sent, received } = state.counters;
    const since = this.totals && at - this.totals.at < pauseSeconds ? this.totals : undefined;
    const rate = (now: number, before: number | undefined) => (since && before !== undefined ? Math.max(0, now - before) / (at - since.at) : null);
    const live = state.live;
    const bytes = Object.fromEntries((live?.networks ?? []).map(({ name, bytesSent }) => [name, bytesSent]));
    const volume = Object.entries(bytes).flatMap(([name, now]) => {
      const before = rate(now, since?.bytes[name]);
      return before === null ? [] : [[name, before] as const];
    });
    if (!live && state.sealed) return;
    const added: Sample = {
      at,
      deliveredPercent: live && live.offered > 0 ? (100 * live.received) / live.offered : null,
      median: live?.delaySeconds?.median ?? null,
      p95: live?.delaySeconds?.p95 ?? null,
      queue: live?.queueFrames ?? null,
      sentPerSecond: rate(sent, since?.sent),
      receivedPerSecond: rate(received, since?.received),
      volume: Object.fromEntries(volume),
    };
    this.totals = { at, sent, received, bytes };
    const pause = last && at - last.at >= pauseSeconds ? [emptyAt((at + last.at) / 2)] : [];
    this.list = [...this.list, ...pause, added].slice(-this.most);
    this.save(milliseconds);
    for (const listener of this.listeners) listener();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** snapshot is another array after each change. */
  readonly snapshot = (): readonly Sample[] => this.list;

  private save(now: number): void {
    if (now - this.savedAt < saveEveryMilliseconds) return;
    this.savedAt = now;
    const rows = this.list.slice(-keptOverReload).map((sample) => [...names.map((name) => sample[name]), sample.volume]);
    try {
      this.storage?.setItem(this.key, JSON.stringify(rows));
    } catch {
      // without room the samples do not survive a reload
    }
  }
}

/** networksOf samples are those of which there is a volume. */
export function networksOf(samples: readonly Sample[]): string[] {
  return [...new Set(samples.flatMap(({ volume }) => Object.keys(volume)))].sort();
}

function emptyAt(at: number): Sample {
  return { at, deliveredPercent: null, median: null, p95: null, queue: null, sentPerSecond: null, receivedPerSecond: null, volume: {} };
}

function restored(storage: Pick<Storage, "getItem"> | undefined, key: string): Sample[] {
  let rows: unknown;
  try {
    rows = JSON.parse(storage?.getItem(key) ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(rows)) return [];
  return rows.filter(isRow).map((row) => ({ ...Object.fromEntries(names.map((name, i) => [name, row[i]])), volume: row[names.length] }) as unknown as Sample);
}

function isRow(row: unknown): row is unknown[] {
  if (!Array.isArray(row) || row.length !== names.length + 1 || typeof row[0] !== "number") return false;
  const volume: unknown = row.at(-1);
  return row.slice(0, -1).every((value) => value === null || typeof value === "number") && typeof volume === "object" && volume !== null && Object.values(volume).every((value) => typeof value === "number");
}

const ofRuns = new Map<string, Samples>();
// The samples of so many runs are kept while the console is open.
const keptRuns = 8;

const prefix = "vignette.samples.";

/** forgetOldest removes the samples of all but the newest runs, which would leave drafts no room. */
export function forgetOldest(storage: Pick<Storage, "length" | "key" | "getItem" | "removeItem">, most = keptRuns): void {
  const keys = Array.from({ length: storage.length }, (_, i) => storage.key(i)).filter((key) => key?.startsWith(prefix) === true) as string[];
  const runs = keys.map((key) => ({ key, at: restored(storage, key).at(-1)?.at ?? 0 })).sort((a, b) => b.at - a.at);
  for (const { key } of runs.slice(most)) storage.removeItem(key);
}

/** samplesOf a run by its UID. They go on while the page shows other parts of the run. */
export function samplesOf(uid: string): Samples {
  let samples = ofRuns.get(uid);
  if (!samples) {
    samples = new Samples(`${prefix}${uid}`, tabStorage);
    forgetOldest(window.sessionStorage);
    ofRuns.set(uid, samples);
    for (const oldest of ofRuns.keys()) {
      if (ofRuns.size <= keptRuns) break;
      ofRuns.delete(oldest);
    }
  }
  return samples;
}
