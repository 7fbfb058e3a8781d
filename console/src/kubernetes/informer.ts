import { list, parametersOf, pathOf, Refusal, type List, type Selection } from "./client";
import type { Kind, KubernetesObject } from "./kinds";
import { closeSocket } from "./socket";

/** State of the objects of a selection, as far as it is known. */
export interface Snapshot<T> {
  /** In order of namespace and name. Absent until they have been listed. */
  objects: T[] | undefined;
  /** Why the objects are absent or no longer follow the cluster. */
  error: Refusal | undefined;
}

/** A connection on which the API server sends changes. */
export interface Watch {
  close(): void;
}

export interface WatchHandlers {
  message(text: string): void;
  /** The connection has ended, for whatever reason. */
  end(): void;
}

/** How an informer reaches the cluster; tests have their own. */
export interface Transport {
  list<T extends KubernetesObject>(kind: Kind<T>, selection: Selection, signal: AbortSignal): Promise<List<T>>;
  watch(path: string, handlers: WatchHandlers): Watch;
}

interface WatchEvent {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: KubernetesObject & { code?: number };
}

// A burst of changes is drawn at once.
const publishAfterMilliseconds = 100;
const shortestPauseMilliseconds = 500;
const longestPauseMilliseconds = 30_000;
/** After the last listener has left, what is known is kept for so long: a page is often opened again soon. */
export const keptMilliseconds = 60_000;

/**
 * Informer follows the objects of a selection by a list and a watch, as client-go's does.
 * Changes come by WebSocket, as browsers allow only six streams of HTTP/1.1 to one server.
 */
export class Informer<T extends KubernetesObject> {
  private readonly objects = new Map<string, T>();
  private readonly listeners = new Set<() => void>();
  private snapshot: Snapshot<T> = { objects: undefined, error: undefined };
  private running: AbortController | undefined;
  private forgetting: ReturnType<typeof setTimeout> | undefined;
  private publishing: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly kind: Kind<T>,
    private readonly selection: Selection,
    private readonly transport: Transport = browser,
    /** onForgotten is called when it has no listeners any more, and knows nothing. */
    private readonly onForgotten: () => void = () => undefined,
  ) {}

  /** subscribe calls the listener after every change until the returned function is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    clearTimeout(this.forgetting);
    if (!this.running) {
      this.running = new AbortController();
      void this.run(this.running.signal);
    }
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) {
        this.running?.abort();
        this.running = undefined;
        clearTimeout(this.forgetting);
        this.forgetting = setTimeout(this.forget, keptMilliseconds);
      }
    };
  };

  /** getSnapshot returns the same object until something has changed. */
  readonly getSnapshot = (): Snapshot<T> => this.snapshot;

  private readonly forget = (): void => {
    this.objects.clear();
    this.snapshot = { objects: undefined, error: undefined };
    this.onForgotten();
  };

  private async run(signal: AbortSignal): Promise<void> {
    let pause = shortestPauseMilliseconds;
    for (;;) {
      try {
        const found = await this.transport.list(this.kind, this.selection, signal);
        this.objects.clear();
        for (const object of found.items) this.objects.set(keyOf(object), object);
        this.publish(undefined);
        if (await this.follow(found.resourceVersion, signal)) pause = shortestPauseMilliseconds;
      } catch (reason) {
        if (signal.aborted) return;
        this.publish(reason instanceof Refusal ? reason : new Refusal(0, "What the API server sent could not be read. The page asks again."));
        if (reason instanceof Refusal && (reason.status === 401 || reason.status === 403)) pause = longestPauseMilliseconds;
      }
      await sleep(pause, signal);
      if (signal.aborted) return;
      pause = Math.min(2 * pause, longestPauseMilliseconds);
    }
  }

  /** follow returns whether a watch has brought anything when there is a reason to list again. */
  private async follow(resourceVersion: string, signal: AbortSignal): Promise<boolean> {
    let version: string | undefined = resourceVersion;
    let anything = false;
    while (version !== undefined && !signal.aborted) {
      const before: string = version;
      version = await this.watchOnce(before, signal);
      if (version === before) return anything; // nothing came: the connection was refused, or ended at once
      anything = true;
    }
    return anything;
  }

  /** watchOnce returns the version at which the watch ended; undefined if the server no longer knows the changes since. */
  private watchOnce(resourceVersion: string, signal: AbortSignal): Promise<string | undefined> {
    return new Promise((resolve) => {
      let version: string | undefined = resourceVersion;
      const parameters = parametersOf(this.selection, { watch: "true", allowWatchBookmarks: "true", resourceVersion });
      const watch = this.transport.watch(`${pathOf(this.kind, this.selection.namespace)}?${parameters}`, {
        message: (text) => {
          version = this.applyText(text);
          if (version === undefined) watch.close();
        },
        end: () => {
          signal.removeEventListener("abort", close);
          resolve(version);
        },
      });
      const close = () => {
        watch.close();
      };
      signal.addEventListener("abort", close);
      if (signal.aborted) close();
    });
  }

  /** applyText of an event. Any other line is a reason to list again. */
  private applyText(text: string): string | undefined {
    let event: WatchEvent;
    try {
      event = JSON.parse(text) as WatchEvent;
    } catch {
      return undefined;
    }
    return this.apply(event);
  }

  private apply(event: WatchEvent): string | undefined {
    if (event.type === "ERROR") return undefined;
    if (event.type === "DELETED") this.objects.delete(keyOf(event.object));
    else if (event.type !== "BOOKMARK") this.objects.set(keyOf(event.object), event.object as T);
    if (event.type !== "BOOKMARK") this.publishSoon();
    return event.object.metadata.resourceVersion;
  }

  private publishSoon(): void {
    this.publishing ??= setTimeout(() => {
      this.publish(undefined);
    }, publishAfterMilliseconds);
  }

  private publish(error: Refusal | undefined): void {
    clearTimeout(this.publishing);
    this.publishing = undefined;
    const sorted = [...this.objects.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
    this.snapshot = { objects: error && !this.snapshot.objects ? undefined : sorted, error };
    for (const listener of this.listeners) listener();
  }
}

function keyOf(object: KubernetesObject): string {
  return `${object.metadata.namespace ?? ""}/${object.metadata.name}`;
}

/** sleep ends early with the signal. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
  });
}

const browser: Transport = {
  list,
  watch(path, handlers) {
    const url = new URL(path, window.location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    socket.onmessage = (event) => {
      if (typeof event.data === "string") handlers.message(event.data);
    };
    socket.onclose = () => {
      handlers.end();
    };
    return {
      close: () => {
        closeSocket(socket);
      },
    };
  },
};
