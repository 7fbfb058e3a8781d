import type { Bounds, Point } from "./projection";

/** A view is the part of the map that a canvas shows. */
export interface View {
  /** centre of the canvas, in metres. */
  centre: Point;
  metresPerPixel: number;
  /** width and height of the canvas in CSS pixels. */
  width: number;
  height: number;
}

const finest = 0.01;
const coarsest = 20_000;

export function toPixel(view: View, metres: Point): Point {
  return {
    x: view.width / 2 + (metres.x - view.centre.x) / view.metresPerPixel,
    y: view.height / 2 - (metres.y - view.centre.y) / view.metresPerPixel,
  };
}

export function toMetres(view: View, pixel: Point): Point {
  return {
    x: view.centre.x + (pixel.x - view.width / 2) * view.metresPerPixel,
    y: view.centre.y - (pixel.y - view.height / 2) * view.metresPerPixel,
  };
}

/** panned moves the map by pixels to the right and down. */
export function panned(view: View, dx: number, dy: number): View {
  return { ...view, centre: { x: view.centre.x - dx * view.metresPerPixel, y: view.centre.y + dy * view.metresPerPixel } };
}

/** zoomed enlarges by a factor; the place under the pixel stays there. */
export function zoomed(view: View, factor: number, pixel: Point = { x: view.width / 2, y: view.height / 2 }): View {
  const metresPerPixel = Math.min(coarsest, Math.max(finest, view.metresPerPixel / factor));
  const fixed = toMetres(view, pixel);
  return {
    ...view,
    metresPerPixel,
    centre: { x: fixed.x - (pixel.x - view.width / 2) * metresPerPixel, y: fixed.y + (pixel.y - view.height / 2) * metresPerPixel },
  };
}

/** fitted shows the whole bounds, with room at the edges and no nearer than a kilometre on the shorter side. */
export function fitted(bounds: Bounds | undefined, width: number, height: number, room = 48): View {
  const { west, south, east, north } = bounds ?? { west: -500, south: -500, east: 500, north: 500 };
  const across = Math.max(width - 2 * room, 1);
  const down = Math.max(height - 2 * room, 1);
  const metresPerPixel = Math.max((east - west) / across, (north - south) / down, 1000 / Math.min(across, down));
  return { centre: { x: (west + east) / 2, y: (south + north) / 2 }, metresPerPixel: Math.min(metresPerPixel, coarsest), width, height };
}

/** resized keeps centre and scale. */
export function resized(view: View, width: number, height: number): View {
  return { ...view, width, height };
}

/** boundsOf a view in metres. */
export function boundsOf(view: View): Bounds {
  const { x: west, y: north } = toMetres(view, { x: 0, y: 0 });
  const { x: east, y: south } = toMetres(view, { x: view.width, y: view.height });
  return { west, south, east, north };
}

export function isInView(view: View, pixel: Point, margin = 0): boolean {
  return pixel.x >= -margin && pixel.y >= -margin && pixel.x <= view.width + margin && pixel.y <= view.height + margin;
}
