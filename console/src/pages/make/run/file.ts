import type { Source } from "../start/source";
import { edited } from "../text/edits";
import { read } from "../text/read";
import { equal } from "../text/values";

/** fileOf a text is what the page creates of it, and what it lets download: a clone says which run it repeats, or is based on if its spec differs. */
export function fileOf(text: string, { mark, text: before }: Pick<Source, "mark" | "text">): string {
  if (!mark) return text;
  const { objects, main } = read(text);
  const label = equal(read(before).main?.object.spec, main?.object.spec) ? "vignette.dev/rerun-of" : "vignette.dev/based-on";
  const marks = objects
    .filter(({ kind }) => kind === "Experiment")
    .flatMap(({ document }) => [
      { document, path: ["metadata", "labels", label], value: mark.uid },
      ...Object.entries(mark.annotations).map(([name, value]) => ({ document, path: ["metadata", "annotations", name], value })),
    ]);
  return edited(text, marks);
}

/** fileNameOf an object's file. */
export function fileNameOf(name: string | undefined): string {
  return `${name === undefined || name === "" ? "experiment" : name}.yaml`;
}
