import { queryOptions, useQuery } from "@tanstack/react-query";
import { ask, askJSON, sessionPath } from "../kubernetes/client";
import type { components } from "../types/console.gen";
import { takeTab } from "./tab";

/** Session says who uses the console, of which cluster. */
export type Session = components["schemas"]["Session"];

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async () => {
    const session = await askJSON<Session>(sessionPath);
    takeTab(session.user); // before any page reads what is kept
    return session;
  },
  staleTime: Infinity,
  retry: false,
});

export function useSession() {
  return useQuery(sessionQuery);
}

/** tokenOf an address, which `vignette ui` has put into its fragment; null if there is none. */
function tokenOf(address: string): string | null {
  return new URLSearchParams(new URL(address).hash.slice(1)).get("token");
}

/** onToken calls the listener when an open page gets an address with a token, for which browsers load nothing. */
export function onToken(listener: () => void): void {
  window.addEventListener("hashchange", ({ newURL }) => {
    if (tokenOf(newURL) !== null) listener();
  });
}

/**
 * logIn sends the token of the address, if there is one.
 * It removes the token from the address, so that nobody shares it.
 */
export async function logIn(): Promise<void> {
  const token = tokenOf(window.location.href);
  if (token === null) return;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  await ask("/console/v1/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }) });
}

/** loginAddress is where the browser logs in and then comes back to the page at a path. */
export function loginAddress(login: string, path: string): string {
  return `${login}?to=${encodeURIComponent(path)}`;
}

/** logOut ends the session of a team's console. */
export async function logOut(): Promise<void> {
  await ask("/console/v1/logout", { method: "POST" });
}
