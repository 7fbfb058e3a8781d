import type { Informer, Snapshot } from "./informer";
import type { KubernetesObject } from "./kinds";

/** Merged is the objects of several informers of one kind, such as those of several namespaces. */
export class Merged<T extends KubernetesObject> {
  private parts: readonly Snapshot<T>[] = [];
  private merged: Snapshot<T> = { objects: undefined, error: undefined };

  constructor(private readonly informers: readonly Pick<Informer<T>, "subscribe" | "getSnapshot">[]) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    const ends = this.informers.map((informer) => informer.subscribe(listener));
    return () => {
      for (const end of ends) end();
    };
  };

  /** getSnapshot returns the same object until a part has changed. Objects are absent until one part knows its own. */
  readonly getSnapshot = (): Snapshot<T> => {
    const parts = this.informers.map((informer) => informer.getSnapshot());
    if (parts.length !== this.parts.length || parts.some((part, i) => part !== this.parts[i])) {
      this.parts = parts;
      const known = parts.flatMap((part) => (part.objects ? [part.objects] : []));
      this.merged = { objects: known.length > 0 ? known.flat() : undefined, error: parts.find((part) => part.error)?.error };
    }
    return this.merged;
  };
}
