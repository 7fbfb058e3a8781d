/** What this browser's tab keeps is its user's: it survives a reload of the page, and not another user. */

const userKey = "vignette-user";

/** namespacesKey is where the browser keeps the namespaces of the present user, by the user's name. */
export const namespacesKey = "vignette-namespaces-of";
// Earlier versions kept namespaces there, whoever had named them.
const formerKey = "vignette-namespaces";

let isLeft = false;

/** tabStorage keeps nothing more once the user has left. */
export const tabStorage: Pick<Storage, "getItem" | "setItem" | "removeItem"> = {
  getItem: (key) => window.sessionStorage.getItem(key),
  setItem: (key, value) => {
    if (!isLeft) window.sessionStorage.setItem(key, value);
  },
  removeItem: (key) => {
    window.sessionStorage.removeItem(key);
  },
};

/** leaveTab forgets all that the tab has kept. The page that is still open keeps nothing more. */
export function leaveTab(): void {
  isLeft = true;
  window.sessionStorage.clear();
}

/** takeTab for a user forgets what the browser has kept of others. */
export function takeTab(user: string): void {
  const before = window.sessionStorage.getItem(userKey);
  if (before !== null && before !== user) window.sessionStorage.clear();
  if (before !== user) rememberUser(user);
  window.localStorage.removeItem(formerKey);
  const all = window.localStorage.getItem(namespacesKey);
  if (all === null) return;
  const own = ofUser(all, user);
  if (own === undefined) window.localStorage.removeItem(namespacesKey);
  else window.localStorage.setItem(namespacesKey, JSON.stringify({ [user]: own }));
}

function rememberUser(user: string): void {
  try {
    window.sessionStorage.setItem(userKey, user);
  } catch {
    // There is no room. Older entries could later be mistaken for another user's.
    window.sessionStorage.clear();
    window.sessionStorage.setItem(userKey, user);
  }
}

function ofUser(all: string, user: string): unknown {
  try {
    const value: unknown = JSON.parse(all);
    return typeof value === "object" && value !== null && Object.hasOwn(value, user) ? (value as Record<string, unknown>)[user] : undefined;
  } catch {
    return undefined;
  }
}
