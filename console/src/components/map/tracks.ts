import { around, type Place } from "./projection";

/** A moment of a track: where a platform is, in seconds after T0. */
export interface TrackPoint extends Place {
  at: number;
}

/** A track in order of time. Between two points a platform moves evenly; after the last one it stays. */
export type Track = readonly TrackPoint[];

/** lastBefore returns the index of the last point no later than a time; -1 if all are later. */
export function lastBefore(track: Track, at: number): number {
  let low = 0;
  let high = track.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const point = track[middle];
    if (point && point.at <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** placeAt a time; undefined before the track's first point, when the platform is nowhere. */
export function placeAt(track: Track, at: number): Place | undefined {
  const index = lastBefore(track, at);
  const before = track[index];
  if (!before) return undefined;
  const after = track[index + 1];
  if (!after) return before;
  const share = (at - before.at) / (after.at - before.at);
  return {
    latitude: before.latitude + share * (after.latitude - before.latitude),
    longitude: around(before.longitude + share * around(after.longitude - before.longitude)),
    altitude: (before.altitude ?? 0) + share * ((after.altitude ?? 0) - (before.altitude ?? 0)),
  };
}

/** reportedAt a time: the last position that had been received by then; undefined before the first. */
export function reportedAt(reported: Track | undefined, at: number): Place | undefined {
  return reported?.[lastBefore(reported, at)];
}

/** movesAt reports whether the platform is on its way at a time. */
export function movesAt(track: Track, at: number): boolean {
  const index = lastBefore(track, at);
  const [before, after] = [track[index], track[index + 1]];
  return before !== undefined && after !== undefined && (before.latitude !== after.latitude || before.longitude !== after.longitude);
}

/** durationOf tracks is the time of their last point; 0 without any. */
export function durationOf(tracks: Iterable<Track>): number {
  let last = 0;
  for (const track of tracks) last = Math.max(last, track.at(-1)?.at ?? 0);
  return last;
}
