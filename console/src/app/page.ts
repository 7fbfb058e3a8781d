import { useEffect, useRef } from "react";

/** sections of the console, by the paths of their pages. */
export const sections = [
  { to: "/", label: "Experiments" },
  { to: "/runs", label: "Archived runs" },
  { to: "/new", label: "New experiment" },
  { to: "/compare", label: "Compare runs" },
  { to: "/scenarios/edit", label: "Scenario editor" },
  { to: "/admin", label: "Administration" },
] as const;

const pages = [
  { path: /^\/ns\/([^/]+)\/experiments\/([^/]+)$/, title: (namespace: string, name: string) => `${name} in ${namespace}` },
  { path: /^\/ns\/([^/]+)\/runs\/([^/]+)$/, title: (namespace: string, uid: string) => `Run ${uid} in ${namespace}` },
  { path: /^\/ns\/([^/]+)\/campaigns\/([^/]+)$/, title: (namespace: string, name: string) => `Campaign ${name} in ${namespace}` },
];

/** titleOf the page at a path, for the browser's tab and history. */
export function titleOf(path: string): string {
  const section = sections.find(({ to }) => to === path);
  if (section) return `${section.label} · vignette`;
  for (const { path: pattern, title } of pages) {
    const [, namespace, name] = pattern.exec(path) ?? [];
    if (namespace !== undefined && name !== undefined) return `${title(decoded(namespace), decoded(name))} · vignette`;
  }
  return "vignette";
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** useNewPage names the page at a path. On another one, readers of the screen go on at its content. */
export function useNewPage(path: string): void {
  const before = useRef(path);
  useEffect(() => {
    document.title = titleOf(path);
    if (before.current === path) return;
    before.current = path;
    document.getElementById("main")?.focus({ preventScroll: true });
  }, [path]);
}
