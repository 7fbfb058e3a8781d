import type { components } from "../../../types/console.gen";

/** LibraryEntry is a file that the console's program brings along. */
export type LibraryEntry = components["schemas"]["LibraryEntry"];

export interface Study {
  name: string;
  entries: LibraryEntry[];
}

/** studiesOf a library, with the entries in which all words occur. The quickstart comes first, campaigns before experiments. */
export function studiesOf(entries: readonly LibraryEntry[], search: string): Study[] {
  const words = search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const studies = new Map<string, LibraryEntry[]>();
  for (const entry of entries) {
    if (entry.kind !== "Experiment" && entry.kind !== "Campaign") continue;
    const text = `${entry.path} ${entry.title} ${entry.kind} ${entry.name}`.toLowerCase();
    if (words.every((word) => text.includes(word))) studies.set(entry.study, [...(studies.get(entry.study) ?? []), entry]);
  }
  return [...studies.entries()]
    .map(([name, found]) => ({ name, entries: found.sort((a, b) => rank(a) - rank(b) || a.path.localeCompare(b.path)) }))
    .sort((a, b) => place(a.name) - place(b.name) || a.name.localeCompare(b.name, undefined, { numeric: true }));
}

/** titleText of an entry says where it goes on: a title is the first line of a file, which may end within a sentence. */
export function titleText({ title }: LibraryEntry): string {
  return title.replace(/[,;:]$/, "…");
}

function place(study: string): number {
  return study === "quickstart" ? 0 : 1;
}

function rank(entry: LibraryEntry): number {
  return entry.kind === "Campaign" ? 0 : 1;
}
