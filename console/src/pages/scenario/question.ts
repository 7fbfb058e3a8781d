import type { PreviewQuery } from "./preview";

/** Question is a preview that is asked for: a scenario's text, and what of it is wanted. */
export interface Question {
  text: string;
  query: PreviewQuery;
}

/** Asked is what the user has chosen. */
export interface Asked {
  text: string;
  /** platforms of the text, by their numbers; undefined where only the server knows them. */
  platforms: readonly number[] | undefined;
  at: number;
  limit: number;
  from: number | undefined;
  to: number | undefined;
}

/** questionOf what was chosen; undefined while there is no platform, of which nothing can be asked. */
export function questionOf({ text, platforms, at, limit, from, to }: Asked): Question | undefined {
  if (text === "" || platforms?.length === 0) return undefined;
  const isThere = (number: number | undefined): number is number => number !== undefined && (platforms?.includes(number) ?? true);
  return { text, query: { at, limit, pair: isThere(from) && isThere(to) && from !== to ? [from, to] : undefined } };
}
