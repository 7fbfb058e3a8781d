import { askAgainAfter } from "../../archive/polling";
import { filePath } from "../../archive/runs";
import { ask, Refusal, unbroken } from "../../kubernetes/client";
import { sleep } from "../../kubernetes/informer";
import { Lines, type Line } from "./lines";

/** What is known of a log that is read. */
export interface Log {
  lines: Line[];
  /** forgotten lines were read and are no longer kept. */
  forgotten: number;
  /** ended is set when nothing more comes. */
  ended: boolean;
  /** full is set when the first lines are there, and the others have no room. */
  full: boolean;
  /** error is why it is not read on now. It is tried again. */
  error: Error | null;
}

/** Source of a log in the archive. */
export interface Source {
  namespace: string;
  uid: string;
  path: string;
  /** offset in bytes from which it is read. */
  offset: number;
  /** follows is set to read on while the log grows. */
  follows: boolean;
  /** keepsFirst is set to keep the first lines, and to end when there is no room for more. */
  keepsFirst?: boolean;
}

const mostLines = 50_000;
const publishEveryMilliseconds = 200;

// A browser opens six connections to a server: a log that is followed is asked for again and again, and holds none.
const everyMilliseconds = 1000;

/** Reading is how far a log was read. */
interface Reading {
  /** offset in bytes of what comes next. */
  offset: number;
  lines: Lines;
  decoder: TextDecoder;
}

/** Follower reads a log while it has listeners. Where an answer breaks off, it goes on at that byte. */
export class Follower {
  private log: Log = { lines: [], forgotten: 0, ended: false, full: false, error: null };
  private readonly listeners = new Set<() => void>();
  private running: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly source: Source,
    private readonly open: (source: Source, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>> = fromServer,
    private readonly most = mostLines,
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (!this.running) {
      this.running = new AbortController();
      void this.run(this.running.signal);
    }
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size > 0) return;
      this.running?.abort();
      this.running = undefined;
      clearTimeout(this.timer);
      this.timer = undefined;
    };
  };

  readonly snapshot = (): Log => this.log;

  private async run(signal: AbortSignal): Promise<void> {
    const reading: Reading = { offset: this.source.offset, lines: new Lines(this.most, this.source.offset > 0, this.source.keepsFirst), decoder: new TextDecoder() };
    for (;;) {
      const before = reading.offset;
      const failure = await this.readOn(reading, signal);
      if (signal.aborted) return;
      const { isFull } = reading.lines;
      const ended = failure === null && !this.source.follows && !isFull;
      if (ended) reading.lines.end();
      if (ended || reading.offset > before || failure !== this.log.error) this.publish(reading.lines, ended, failure);
      if (ended || isFull) return;
      await sleep(askAgainAfter(failure, everyMilliseconds), signal);
    }
  }

  /** readOn to the present end of the log. It returns why it came no further. */
  private async readOn(reading: Reading, signal: AbortSignal): Promise<Error | null> {
    try {
      signal.throwIfAborted();
      const reader = (await this.open({ ...this.source, offset: reading.offset }, signal)).getReader();
      for (;;) {
        const { done, value } = await unbroken(reader.read());
        if (done || signal.aborted) return null;
        reading.offset += value.length;
        reading.lines.add(reading.decoder.decode(value, { stream: true }));
        if (reading.lines.isFull) {
          await reader.cancel();
          return null;
        }
        this.timer ??= setTimeout(() => {
          this.publish(reading.lines, false, null);
        }, publishEveryMilliseconds);
      }
    } catch (reason) {
      if (this.source.follows && reason instanceof Refusal && reason.status === 404) return null; // it has not begun
      return reason instanceof Error ? reason : new Error("unknown");
    }
  }

  private publish(lines: Lines, ended: boolean, error: Error | null): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.log = { lines: lines.snapshot(), forgotten: lines.forgotten, ended, full: lines.isFull, error };
    for (const listener of this.listeners) listener();
  }
}

async function fromServer({ namespace, uid, path, offset }: Source, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const answer = await ask(`${filePath(namespace, uid, path)}?offset=${offset}`, { signal });
  if (!answer.body) throw new Refusal(answer.status, "The results server's answer has no content.");
  return answer.body;
}
