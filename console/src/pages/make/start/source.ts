import { ask, askJSON, unbroken } from "../../../kubernetes/client";
import type { components } from "../../../types/console.gen";
import { empty } from "./empty";

type Clone = components["schemas"]["Clone"];

/** Mark ties an experiment to the run that it repeats or is based on. */
export type Mark = components["schemas"]["CloneMark"];

/** Source is what an experiment is made from. */
export interface Source {
  /** words that say what it is. */
  title: string;
  text: string;
  mark?: Mark;
  /** notes on what is not repeated. */
  notes: string[];
}

/** sourceOf an address: library:PATH, run:NAMESPACE/NAME, run:NAMESPACE/UID or empty. */
export async function sourceOf(from: string, signal?: AbortSignal): Promise<Source> {
  const init = signal ? { signal } : {};
  const [kind, ...rest] = from.split(":");
  const address = rest.join(":");
  if (kind === "library") {
    const answer = await ask(`/console/v1/library/${address.split("/").map(encodeURIComponent).join("/")}`, init);
    return { title: `From the library: ${address}`, text: await unbroken(answer.text()), notes: [] };
  }
  if (kind === "run") {
    const [namespace = "", run = ""] = address.split("/");
    const clone = await askJSON<Clone>(`/console/v1/namespaces/${encodeURIComponent(namespace)}/runs/${encodeURIComponent(run)}/clone`, init);
    return { title: `Clone of ${clone.mark.name}, run ${clone.mark.uid}`, text: clone.text, mark: clone.mark, notes: clone.notes };
  }
  return { title: "From an empty form", text: empty, notes: [] };
}
