import { defaultStringifySearch, useNavigate, useRouterState } from "@tanstack/react-router";
import { useCallback } from "react";

/** Choices that stand in a page's address. An absent value is the one that the page begins with. */
export type Choices = Record<string, string | string[] | undefined>;

/** writeSearch writes a list of texts as one parameter for each, such as run=a&run=b, and the rest as the router does. */
export function writeSearch(search: Record<string, unknown>): string {
  const single: Record<string, unknown> = {};
  const lists = new URLSearchParams();
  for (const [key, value] of Object.entries(search)) {
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) for (const item of value) lists.append(key, item);
    else single[key] = value;
  }
  const parts = [defaultStringifySearch(single).slice(1), lists.toString().replaceAll("%2F", "/")].filter((part) => part !== "");
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

/** listOf reads a parameter that may come once, several times or not at all. */
export function listOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(String);
  if (typeof value === "number" || typeof value === "boolean") return [String(value)];
  return typeof value === "string" && value !== "" ? [value] : [];
}

/** useChoices returns the choices in the address, and a function that changes some of them. */
export function useChoices(): [(name: string) => string | undefined, (change: Choices) => void, (name: string) => string[]] {
  const search = useRouterState({ select: (state): Record<string, unknown> => state.location.search });
  const navigate = useNavigate();
  const choose = useCallback(
    (change: Choices) => {
      void navigate({ to: ".", search: (before: Record<string, unknown>) => ({ ...before, ...change }), replace: true, resetScroll: false } as never);
    },
    [navigate],
  );
  return [(name) => listOf(search[name])[0], choose, (name) => listOf(search[name])];
}
