import { useLocalStorage } from "@mantine/hooks";
import { useMemo } from "react";
import { useRight } from "../kubernetes/hooks";
import { useSession } from "./session";

/** Scope is the namespaces whose experiments a user sees. */
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

/** useScope returns all namespaces for whoever may list experiments everywhere, else those that he named. */
export function useScope(asked?: string): Scope {
  const { allowed: all, error } = useRight({ verb: "list", group: "vignette.dev", resource: "experiments" });
  const own = useSession().data?.namespace;
  const [remembered, setRemembered] = useLocalStorage<string[]>({ key: "vignette-namespaces", defaultValue: [], getInitialValueInEffect: false });
  const namespaces = useMemo(() => (all === false ? namespacesOf(own, asked, ...remembered) : all ? undefined : []), [all, own, asked, remembered]);
  return {
    namespaces,
    known: all !== undefined,
    error,
    remember: (namespace) => {
      setRemembered((before) => namespacesOf(...before, namespace));
    },
    forget: (namespace) => {
      setRemembered((before) => before.filter((each) => each !== namespace));
    },
  };
}
