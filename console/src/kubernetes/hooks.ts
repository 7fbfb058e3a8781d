import { useQuery } from "@tanstack/react-query";
import { useMemo, useSyncExternalStore } from "react";
import { mayI, type Access, type Selection } from "./client";
import { Informer, type Snapshot } from "./informer";
import { Merged } from "./merged";
import type { Kind, KubernetesObject } from "./kinds";

// Components that follow the same objects share one informer.
const informers = new Map<string, Informer<KubernetesObject>>();

function informerOf<T extends KubernetesObject>(kind: Kind<T>, selection: Selection): Informer<T> {
  const key = JSON.stringify([kind.group, kind.plural, selection.namespace, selection.labelSelector, selection.fieldSelector]);
  let informer = informers.get(key);
  if (!informer) {
    const made = new Informer<KubernetesObject>(kind, selection, undefined, () => {
      if (informers.get(key) === made) informers.delete(key);
    });
    informers.set(key, made);
    informer = made;
  }
  return informer as unknown as Informer<T>;
}

/** useObjects follows the objects of a selection. Without a namespace, they are those of all. */
export function useObjects<T extends KubernetesObject>(kind: Kind<T>, selection: Selection = {}): Snapshot<T> {
  const { namespace, labelSelector, fieldSelector } = selection;
  const informer = useMemo(
    () =>
      informerOf(kind, {
        ...(namespace !== undefined && { namespace }),
        ...(labelSelector !== undefined && { labelSelector }),
        ...(fieldSelector !== undefined && { fieldSelector }),
      }),
    [kind, namespace, labelSelector, fieldSelector],
  );
  return useSyncExternalStore(informer.subscribe, informer.getSnapshot);
}

/** useObjectsIn follows the objects of some namespaces, or of all where none are given. An empty list gives none. */
export function useObjectsIn<T extends KubernetesObject>(kind: Kind<T>, namespaces: readonly string[] | undefined): Snapshot<T> {
  const names = namespaces?.join(" ");
  const merged = useMemo(
    () => new Merged(names === undefined ? [informerOf(kind, {})] : names.split(" ").flatMap((namespace) => (namespace ? [informerOf(kind, { namespace })] : []))),
    [kind, names],
  );
  return useSyncExternalStore(merged.subscribe, merged.getSnapshot);
}

/** useObject follows one object. It is undefined until it was read; absent is set if there is none of the name. */
export function useObject<T extends KubernetesObject>(kind: Kind<T>, namespace: string, name: string): { object: T | undefined; absent: boolean; error: Snapshot<T>["error"] } {
  const { objects, error } = useObjects(kind, { namespace, fieldSelector: `metadata.name=${name}` });
  return { object: objects?.[0], absent: objects?.length === 0, error };
}

const askAgainMilliseconds = 15_000;

/** Right of a user; allowed is undefined until it is known, and error says why it is not. */
export interface Right {
  allowed: boolean | undefined;
  error: Error | null;
}

/** useRight asks Kubernetes whether the user has that right; again from time to time while there is no answer. */
export function useRight(access: Access): Right {
  const { data, error } = useQuery({
    queryKey: ["access", access],
    queryFn: () => mayI(access),
    staleTime: 60_000,
    refetchInterval: ({ state }) => (state.error ? askAgainMilliseconds : false),
  });
  return { allowed: data, error: data === undefined ? error : null };
}

/** useAccess reports whether the user has that right; undefined until it is known. */
export function useAccess(access: Access): boolean | undefined {
  return useRight(access).allowed;
}
