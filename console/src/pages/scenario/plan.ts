import { metresBetween, type Place } from "../../components/map/projection";
import { secondsOf } from "../../components/time";
import type { TrackPoint } from "../../components/map/tracks";
import type { Scenario } from "../../types";

/** A platform with the waypoints that it passes. */
export interface Platform {
  number: number;
  /** name as in the file; empty for a platform that has only its number. */
  name: string;
  /** waypoints in order of time. */
  waypoints: readonly TrackPoint[];
}

export type Propagation = NonNullable<Scenario["spec"]["propagation"]>;

/** Plan is a scenario as it is edited. */
export interface Plan {
  name: string;
  namespace: string;
  description: string;
  platforms: readonly Platform[];
  /** propagation as it was typed; absent for positions without pathloss. */
  propagation: Propagation | undefined;
  /** orderOfBattle as it was read: the editor does not change it. */
  orderOfBattle?: NonNullable<Scenario["spec"]["orderOfBattle"]>;
}

/** labelOf a platform is what people call it. */
export function labelOf({ name, number }: Platform): string {
  return name || String(number);
}

/** added has one more platform, which stands at a place from the start on. */
export function added(plan: Plan, place: Place): Plan {
  const taken = new Set(plan.platforms.map(({ number }) => number));
  let number = 1;
  while (taken.has(number)) number++;
  return { ...plan, platforms: [...plan.platforms, { number, name: "", waypoints: [{ at: 0, ...rounded(place) }] }] };
}

function rounded({ latitude, longitude, altitude }: Place): Place {
  return { latitude: Number(latitude.toFixed(6)), longitude: Number(longitude.toFixed(6)), ...(altitude !== undefined && { altitude: Number(altitude.toFixed(1)) }) };
}

/** changed has another platform in place of the one of a number. */
export function changed(plan: Plan, number: number, how: (platform: Platform) => Platform): Plan {
  return { ...plan, platforms: plan.platforms.map((platform) => (platform.number === number ? how(platform) : platform)) };
}

export function removed(plan: Plan, number: number): Plan {
  return { ...plan, platforms: plan.platforms.filter((platform) => platform.number !== number) };
}

/** extended has one more waypoint, which is reached at a speed in metres per second. */
export function extended(platform: Platform, place: Place, speed: number): Platform {
  const last = platform.waypoints.at(-1);
  const at = last ? last.at + Math.max(1, Math.ceil(metresBetween(last, place) / speed)) : 0;
  const altitude = last?.altitude === undefined ? {} : { altitude: last.altitude };
  return { ...platform, waypoints: [...platform.waypoints, { at, ...altitude, ...rounded(place) }] };
}

/** moved has a waypoint at another place; its time stays. */
export function moved(platform: Platform, index: number, place: Place): Platform {
  return { ...platform, waypoints: platform.waypoints.map((point, i) => (i === index ? { ...point, ...rounded(place) } : point)) };
}

/** timed has a waypoint at another time. The order follows. */
export function timed(platform: Platform, index: number, at: number): Platform {
  const waypoints = platform.waypoints.map((point, i) => (i === index ? { ...point, at: Math.max(0, at) } : point));
  return { ...platform, waypoints: waypoints.sort((a, b) => a.at - b.at) };
}

/** without has a waypoint less. */
export function without(platform: Platform, index: number): Platform {
  return { ...platform, waypoints: platform.waypoints.filter((_, i) => i !== index) };
}

/** secondsTyped is a time as people type it: 90, 90s, 1m30s or 1:30; NaN if it is none. */
export function secondsTyped(text: string): number {
  const clean = text.trim();
  if (/^\d+(\.\d+)?$/.test(clean)) return Number(clean);
  const parts = /^(?:(\d+):)?(\d+):(\d{1,2})$/.exec(clean);
  if (parts) return 3600 * Number(parts[1] ?? 0) + 60 * Number(parts[2]) + Number(parts[3]);
  return secondsOf(clean);
}

/** speedTyped is a speed in metres per second: 50km/h, 1.4m/s or 12kn; NaN if it is none. */
export function speedTyped(text: string): number {
  const parts = /^\s*(\d+(?:\.\d+)?)\s*(m\/s|km\/h|kn)\s*$/.exec(text);
  const units: Record<string, number> = { "m/s": 1, "km/h": 1 / 3.6, kn: 1852 / 3600 };
  const speed = Number(parts?.[1]) * (units[parts?.[2] ?? ""] ?? NaN);
  return speed > 0 ? speed : NaN;
}
