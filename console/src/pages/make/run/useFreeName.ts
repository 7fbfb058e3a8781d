import { useEffect, useMemo, useRef } from "react";
import { useTakenNames } from "../hooks";
import { edited } from "../text/edits";
import type { TextModel } from "../text/model";
import { read } from "../text/read";
import { freeName } from "./names";

/** withFreeName is a text whose experiment has a name that is free. */
function withFreeName(text: string, taken: ReadonlySet<string>): string {
  const main = read(text).main;
  if (!main?.name) return text;
  return edited(text, [{ document: main.document, path: ["metadata", "name"], value: freeName(main.name, taken) }]);
}

/**
 * useFreeName gives the experiment of a source a name that is free, while nobody has changed the text. It does not rename again what a user has undone.
 * It returns the text with that name; undefined until the names in use are known.
 */
export function useFreeName(model: TextModel, source: string, namespace: string): string | undefined {
  const taken = useTakenNames(namespace);
  const named = useMemo(() => taken && withFreeName(source, taken), [source, taken]);
  const automatic = useRef(source);
  useEffect(() => {
    if (named === undefined || model.getSnapshot().text !== automatic.current) return;
    automatic.current = named;
    model.replace(named, "name");
  }, [model, named]);
  return named;
}
