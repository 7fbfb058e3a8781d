import { Draft } from "../../app/drafts";
import type { Plan } from "./plan";
import type { Loaded } from "./loaded";

/** Kept is what is kept of a plan that was not saved yet. */
export interface Kept {
  plan: Plan;
  /** version of the Scenario and its files from which the plan began; the present one without it. */
  version?: string;
}

function isKept(value: unknown): value is Kept {
  const { plan, version } = (typeof value === "object" && value !== null ? value : {}) as Partial<Kept>;
  const texts = [version ?? "", plan?.name, plan?.namespace, plan?.description];
  return texts.every((text) => typeof text === "string") && Array.isArray(plan?.platforms) && plan.platforms.every(({ number, name, waypoints }) => typeof number === "number" && typeof name === "string" && Array.isArray(waypoints));
}

/** draftOf a user who edits a Scenario, or makes a new one. */
export function draftOf(user: string, namespace: string, name: string | undefined): Draft<Kept> {
  return new Draft(user, `/scenarios/edit?${namespace}/${name ?? ""}`, isKept);
}

/** versionOf what was loaded; it is another one once anybody has changed it. A status does not count. */
export function versionOf(loaded: Loaded | undefined): string {
  if (!loaded) return "";
  const { uid, generation } = loaded.scenario.metadata;
  return [`${uid ?? ""}/${generation ?? 0}`, ...loaded.files.map(({ metadata }) => `${metadata.name}/${metadata.resourceVersion ?? ""}`)].join(" ");
}
