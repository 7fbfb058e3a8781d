import { useEffect, useSyncExternalStore } from "react";
import { tabStorage } from "./tab";

/** Drafts are kept for as long as the browser's tab is open. They survive a reload of the page. */

const prefix = "vignette-draft ";
// A draft is written once typing or dragging pauses.
const restMilliseconds = 300;

/** Draft is where one user's unsaved work on one address is kept. */
export class Draft<T> {
  private readonly key: string;
  private full = false;
  private waiting: { value: T; timer: ReturnType<typeof setTimeout> } | undefined;
  private readonly listeners = new Set<() => void>();

  constructor(
    user: string,
    address: string,
    private readonly isDraft: (value: unknown) => value is T,
    private readonly store: Pick<Storage, "getItem" | "setItem" | "removeItem"> = tabStorage,
  ) {
    this.key = `${prefix}${user} ${address}`;
  }

  /** read what was kept; undefined if there is nothing, or it has another form. */
  read(): T | undefined {
    try {
      const value: unknown = JSON.parse(this.store.getItem(this.key) ?? "null");
      return this.isDraft(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  /** keep a value in place of the one before. Without room for it nothing is kept. */
  keep(value: T): void {
    try {
      this.store.setItem(this.key, JSON.stringify(value));
      this.settle(false);
    } catch {
      this.store.removeItem(this.key);
      this.settle(true);
    }
  }

  /** keepSoon keeps the latest value when no other one has come for a while. */
  keepSoon(value: T): void {
    clearTimeout(this.waiting?.timer);
    this.waiting = { value, timer: setTimeout(this.keepNow, restMilliseconds) };
  }

  /** keepNow keeps what waits to be kept. */
  readonly keepNow = (): void => {
    const { waiting } = this;
    if (!waiting) return;
    this.forgetWaiting();
    this.keep(waiting.value);
  };

  private forgetWaiting(): void {
    clearTimeout(this.waiting?.timer);
    this.waiting = undefined;
  }

  /** discard what is kept, and what waits to be. */
  readonly discard = (): void => {
    this.forgetWaiting();
    this.store.removeItem(this.key);
    this.settle(false);
  };

  /** isFull reports whether there was no room for the draft. */
  readonly isFull = (): boolean => this.full;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  private settle(full: boolean): void {
    if (this.full === full) return;
    this.full = full;
    for (const listener of this.listeners) listener();
  }
}

/** useKept keeps a value when it rests, and when the page is left; undefined discards the draft. It reports whether there is no room for it. */
export function useKept<T>(draft: Draft<T>, value: T | undefined): boolean {
  useEffect(() => {
    if (value === undefined) draft.discard();
    else draft.keepSoon(value);
  }, [draft, value]);
  useEffect(() => {
    window.addEventListener("pagehide", draft.keepNow);
    return () => {
      window.removeEventListener("pagehide", draft.keepNow);
      draft.keepNow();
    };
  }, [draft]);
  return useSyncExternalStore(draft.subscribe, draft.isFull);
}

/** noRoom says what it means that a draft is not kept. */
export const noRoom = "The browser has no room for this draft: it is lost when the page is left.";
