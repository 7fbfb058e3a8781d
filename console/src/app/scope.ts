import { useLocalStorage } from "@mantine/hooks";
import { useMemo } from "react";
import type { Access } from "../kubernetes/client";
import { useRight } from "../kubernetes/hooks";
import { useSession } from "./session";
import { namespacesKey } from "./tab";

/** Scope is the namespaces whose experiments, or archived runs, a user sees. */
export interface Scope {
  /** namespaces to read: undefined for all. */
  namespaces: readonly string[] | undefined;
  /** Set once it is known what the user may list. */
  known: boolean;
  /** Why that is not known. */
  error: Error | null;
  /** remember a namespace in this browser. */
  remember: (namespace: string) => void;
  forget: (namespace: string) => void;
}

/** isNamespace reports whether Kubernetes could have a namespace of that name. */
export function isNamespace(name: string): boolean {
  return name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name);
}

/** namespacesOf a user who may not list all: those he named, in this session or before, without repetition. */
export function namespacesOf(...names: (string | undefined)[]): string[] {
  return [...new Set(names.filter((name): name is string => name !== undefined && isNamespace(name)))].sort();
}

const nobody: readonly string[] = [];

/** useRemembered returns the namespaces that this user has named in this browser. It has those of one user only. */
function useRemembered() {
  const user = useSession().data?.user;
  const [all, setAll] = useLocalStorage<Record<string, string[]>>({ key: namespacesKey, defaultValue: {}, getInitialValueInEffect: false });
  const change = (how: (before: readonly string[]) => string[]) => {
    if (user !== undefined) setAll((before) => ({ [user]: how(before[user] ?? []) }));
  };
  return { remembered: (user !== undefined && all[user]) || nobody, change };
}

const toListExperiments: Access = { verb: "list", group: "vignette.dev", resource: "experiments" };

/** toReadArchives is the right to read archived runs. */
export const toReadArchives: Access = { verb: "get", group: "results.vignette.dev", resource: "archives", subresource: "proxy" };

/** useScope returns all namespaces for whoever has a right everywhere, that to list experiments, else those that he named. */
export function useScope(asked?: string, right = toListExperiments): Scope {
  const { data: session } = useSession();
  const { allowed: all, error } = useRight(right);
  const { allowed: first } = useRight({ ...right, namespace: session?.namespace ?? "default" });
  const { remembered, change } = useRemembered();
  // A kubeconfig's namespace is the user's own; that of a team's console is everybody's.
  const own = session?.mode === "team" && !first ? undefined : session?.namespace;
  const namespaces = useMemo(() => (all === false ? namespacesOf(own, asked, ...remembered) : all ? undefined : []), [all, own, asked, remembered]);
  return {
    namespaces,
    known: all !== undefined && (all || session?.mode !== "team" || first !== undefined),
    error,
    remember: (namespace) => {
      change((before) => namespacesOf(...before, namespace));
    },
    forget: (namespace) => {
      change((before) => before.filter((each) => each !== namespace));
    },
  };
}

/** useFirstNamespace returns the one that a page begins with. In a team's console it is one that the user has named, if there is any. */
export function useFirstNamespace(): string {
  const { data: session } = useSession();
  const { remembered } = useRemembered();
  return (session?.mode === "team" ? remembered[0] : undefined) ?? session?.namespace ?? "default";
}
