import { useEffect, useSyncExternalStore } from "react";

/** Drafts are kept for as long as the browser's tab is open. They survive that the page is loaded anew. */

const prefix = "vignette-draft ";

/** Draft is where one user's unsaved work on one address is kept. */
export class Draft<T> {
  private readonly key: string;
  private full = false;
  private readonly listeners = new Set<() => void>();

  constructor(
    user: string,
    address: string,
    private readonly isDraft: (value: unknown) => value is T,
    private readonly store: Storage = window.sessionStorage,
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

  readonly discard = (): void => {
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

/** useKept keeps a value as it changes; undefined discards the draft. It reports whether there is no room for it. */
export function useKept<T>(draft: Draft<T>, value: T | undefined): boolean {
  useEffect(() => {
    if (value === undefined) draft.discard();
    else draft.keep(value);
  }, [draft, value]);
  return useSyncExternalStore(draft.subscribe, draft.isFull);
}

/** noRoom says what it means that a draft is not kept. */
export const noRoom = "The browser has no room for this draft: it is lost when the page is left.";
