import type { Point } from "./projection";

/** nearest returns the index of the point nearest to a pixel, no further than a radius; -1 if there is none. */
export function nearest(points: readonly (Point | undefined)[], pixel: Point, radius: number): number {
  let found = -1;
  let least = radius;
  points.forEach((point, index) => {
    if (!point) return;
    const distance = Math.hypot(point.x - pixel.x, point.y - pixel.y);
    if (distance <= least) [found, least] = [index, distance];
  });
  return found;
}

/** distanceToSegment is how far a pixel is from the line between two points. */
export function distanceToSegment(pixel: Point, from: Point, to: Point): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length2 = dx * dx + dy * dy;
  const along = length2 === 0 ? 0 : Math.min(1, Math.max(0, ((pixel.x - from.x) * dx + (pixel.y - from.y) * dy) / length2));
  return Math.hypot(pixel.x - from.x - along * dx, pixel.y - from.y - along * dy);
}

/** nearestSegment returns the index of the line nearest to a pixel, no further than a radius; -1 if there is none. */
export function nearestSegment(segments: readonly (readonly [Point, Point] | undefined)[], pixel: Point, radius: number): number {
  let found = -1;
  let least = radius;
  segments.forEach((segment, index) => {
    if (!segment) return;
    const distance = distanceToSegment(pixel, ...segment);
    if (distance <= least) [found, least] = [index, distance];
  });
  return found;
}
