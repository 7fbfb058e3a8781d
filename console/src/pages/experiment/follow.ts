import { filePath } from "../../archive/runs";
import { ask, Refusal, unbroken } from "../../kubernetes/client";
import { Lines, type Line } from "./lines";

/** What is known of a log that is read. */
export interface Log {
  lines: Line[];
  /** forgotten lines were read and are no longer kept. */
  forgotten: number;
  /** ended is set when nothing more comes. */
  ended: boolean;
  error: unknown;
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
}

const mostLines = 50_000;
const publishEveryMilliseconds = 200;

/** Follower reads a log, on a stream that ends with its last listener. A page has one at a time: browsers allow few streams. */
export class Follower {
  private log: Log = { lines: [], forgotten: 0, ended: false, error: undefined };
  private readonly listeners = new Set<() => void>();
  private running: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly source: Source,
    private readonly open: (source: Source, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>> = fromServer,
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (!this.running) {
      this.running = new AbortController();
      void this.read(this.running.signal);
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

  private async read(signal: AbortSignal): Promise<void> {
    const lines = new Lines(mostLines, this.source.offset > 0);
    try {
      const reader = (await this.open(this.source, signal)).getReader();
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await unbroken(reader.read());
        if (signal.aborted) return;
        if (done) break;
        lines.add(decoder.decode(value, { stream: true }));
        this.timer ??= setTimeout(() => {
          this.publish(lines, false, undefined);
        }, publishEveryMilliseconds);
      }
      lines.end();
      this.publish(lines, true, undefined);
    } catch (error) {
      if (!signal.aborted) this.publish(lines, true, error);
    }
  }

  private publish(lines: Lines, ended: boolean, error: unknown): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.log = { lines: lines.snapshot(), forgotten: lines.forgotten, ended, error };
    for (const listener of this.listeners) listener();
  }
}

async function fromServer({ namespace, uid, path, offset, follows }: Source, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const parameters = new URLSearchParams({ offset: String(offset), ...(follows && { follow: "true" }) });
  const answer = await ask(`${filePath(namespace, uid, path)}?${parameters.toString()}`, { signal });
  if (!answer.body) throw new Refusal(answer.status, "The results server's answer has no content.");
  return answer.body;
}
