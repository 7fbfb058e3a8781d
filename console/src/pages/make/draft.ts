import { useMemo } from "react";
import { Draft, noRoom, useKept } from "../../app/drafts";
import { isFields } from "./text/values";

/** Kept is what is kept of a text that was not run yet. */
export interface Kept {
  text: string;
  /** namespace that was chosen beside the text. */
  namespace?: string;
}

function isKept(value: unknown): value is Kept {
  return isFields(value) && typeof value.text === "string" && (value.namespace === undefined || typeof value.namespace === "string");
}

/** draftOf a user who makes something from a source. */
export function draftOf(user: string, from: string): Draft<Kept> {
  return new Draft(user, `/new?from=${from}`, isKept);
}

// A Secret in any notation, also in a list or a text that cannot be read. Tags, anchors and comments may precede the word; an alias may be it.
const secret = /\bkind["']?\s*:\s*(?:[!&>|]\S*\s+|#[^\n]*\n\s*)*(?:["']?Secret\b|\*)/;

/** mayKeep reports whether a text can be kept in the browser: what may be a Secret cannot. */
export function mayKeep(text: string): boolean {
  return !secret.test(text);
}

/** useKeeping keeps a text while it is not one of those to begin with. It returns why it cannot. */
export function useKeeping(draft: Draft<Kept>, text: string, namespace: string | undefined, beginnings: readonly (string | undefined)[]): string {
  const isChanged = !beginnings.includes(text);
  const keepable = useMemo(() => mayKeep(text), [text]);
  const kept = useMemo(() => (isChanged && keepable ? { text, ...(namespace !== undefined && { namespace }) } : undefined), [text, namespace, isChanged, keepable]);
  const isFull = useKept(draft, kept);
  if (isChanged && !keepable) return "A text with a Secret is not kept in the browser: it is lost when the page is left.";
  return isFull ? noRoom : "";
}
