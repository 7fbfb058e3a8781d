import type { Background } from "./background";
import { degreesLabel, multiples, niceStep, scaleBar } from "./grid";
import { around, type Point, type Projection } from "./projection";
import type { Scheme } from "./sprites";
import { shaded, type Terrain } from "./terrain";
import { boundsOf, toPixel, type View } from "./view";

const colours: Record<Scheme, { ground: string; grid: string; text: string; track: string; selected: string; bar: string }> = {
  light: { ground: "#eef1f0", grid: "rgba(60,80,90,0.22)", text: "#4a555c", track: "rgba(30,60,80,0.35)", selected: "#0072B2", bar: "#1b1f22" },
  dark: { ground: "#1b1f22", grid: "rgba(190,210,220,0.18)", text: "#a9b4bb", track: "rgba(190,215,230,0.32)", selected: "#56B4E9", bar: "#f1f3f5" },
};

/** A track in metres: x and y of each point in turn. */
export interface Way {
  name: string;
  points: Float64Array;
}

export interface Ground {
  projection: Projection;
  terrain: Terrain | undefined;
  ways: readonly Way[];
  selected: string | undefined;
  /** background is drawn below all. */
  background: Pick<Background, "draw"> | undefined;
  /** withoutPlaces has no scale and no graticule, as places mean nothing. */
  withoutPlaces: boolean;
}

// Hills shade a background map, and do not hide it.
const overBackground = 0.45;

/** drawGround draws what does not move: terrain, graticule, tracks and the scale bar. */
export function drawGround(context: CanvasRenderingContext2D, view: View, ground: Ground, scheme: Scheme): void {
  context.fillStyle = colours[scheme].ground;
  context.fillRect(0, 0, view.width, view.height);
  if (ground.withoutPlaces) return;
  const isOverBackground = ground.background?.draw(context, view, ground.projection, scheme) === true;
  context.globalAlpha = isOverBackground ? overBackground : 1;
  if (ground.terrain) drawTerrain(context, view, ground.projection, ground.terrain, scheme);
  context.globalAlpha = 1;
  drawGraticule(context, view, ground.projection, scheme);
  drawWays(context, view, ground, scheme);
  drawScaleBar(context, view, scheme);
}

const hills = new WeakMap<Terrain, Map<Scheme, HTMLCanvasElement>>();

/** hillsOf a terrain as a picture, which is made once. */
function hillsOf(terrain: Terrain, scheme: Scheme): HTMLCanvasElement {
  const kept = hills.get(terrain) ?? new Map<Scheme, HTMLCanvasElement>();
  hills.set(terrain, kept);
  const known = kept.get(scheme);
  if (known) return known;
  const canvas = document.createElement("canvas");
  canvas.width = terrain.columns;
  canvas.height = terrain.rows;
  canvas.getContext("2d")?.putImageData(new ImageData(shaded(terrain, scheme), terrain.columns, terrain.rows), 0, 0);
  kept.set(scheme, canvas);
  return canvas;
}

function drawTerrain(context: CanvasRenderingContext2D, view: View, projection: Projection, terrain: Terrain, scheme: Scheme): void {
  const north = terrain.south + terrain.rows * terrain.cellDegrees;
  const east = terrain.west + terrain.columns * terrain.cellDegrees;
  const from = toPixel(view, projection.toMetres({ latitude: north, longitude: terrain.west }));
  const to = toPixel(view, projection.toMetres({ latitude: terrain.south, longitude: east }));
  context.imageSmoothingQuality = "high";
  context.drawImage(hillsOf(terrain, scheme), from.x, from.y, to.x - from.x, to.y - from.y);
}

function drawGraticule(context: CanvasRenderingContext2D, view: View, projection: Projection, scheme: Scheme): void {
  const { west, south, east, north } = boundsOf(view);
  const low = projection.toPlace({ x: west, y: south });
  const high = projection.toPlace({ x: east, y: north });
  const step = niceStep(Math.max((high.latitude - low.latitude) / Math.max(view.height / 110, 1), 1e-6));
  // East of the date line longitudes begin anew.
  const wide = (high.longitude - low.longitude + 360) % 360;
  const eastStep = niceStep(Math.max(wide / Math.max(view.width / 140, 1), 1e-6));
  const { grid, text } = colours[scheme];
  context.strokeStyle = grid;
  context.fillStyle = text;
  context.lineWidth = 1;
  context.font = "11px system-ui, sans-serif";
  context.beginPath();
  for (const latitude of multiples(step, low.latitude, high.latitude)) {
    const y = Math.round(toPixel(view, projection.toMetres({ latitude, longitude: low.longitude })).y) + 0.5;
    context.moveTo(0, y);
    context.lineTo(view.width, y);
    context.fillText(degreesLabel(latitude, step, ["N", "S"]), 4, y - 3);
  }
  for (const longitude of multiples(eastStep, low.longitude, low.longitude + wide)) {
    const x = Math.round(toPixel(view, projection.toMetres({ latitude: low.latitude, longitude })).x) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, view.height);
    context.fillText(degreesLabel(around(longitude), eastStep, ["E", "W"]), x + 3, 12);
  }
  context.stroke();
}

function drawWays(context: CanvasRenderingContext2D, view: View, ground: Ground, scheme: Scheme): void {
  const { track, selected } = colours[scheme];
  context.lineJoin = "round";
  context.lineWidth = 1;
  context.strokeStyle = track;
  context.beginPath();
  for (const way of ground.ways) if (way.name !== ground.selected) trace(context, view, way);
  context.stroke();
  const own = ground.ways.find((way) => way.name === ground.selected);
  if (!own) return;
  context.lineWidth = 2.5;
  context.strokeStyle = selected;
  context.beginPath();
  trace(context, view, own);
  context.stroke();
}

/** trace leaves out points that would lie within a pixel of the one before. */
function trace(context: CanvasRenderingContext2D, view: View, { points }: Way): void {
  let last: Point | undefined;
  for (let i = 0; i + 1 < points.length; i += 2) {
    const pixel = toPixel(view, { x: points[i] ?? 0, y: points[i + 1] ?? 0 });
    const isEnd = i + 3 >= points.length;
    if (last && !isEnd && Math.abs(pixel.x - last.x) < 1 && Math.abs(pixel.y - last.y) < 1) continue;
    if (last) context.lineTo(pixel.x, pixel.y);
    else context.moveTo(pixel.x, pixel.y);
    last = pixel;
  }
}

function drawScaleBar(context: CanvasRenderingContext2D, view: View, scheme: Scheme): void {
  const { pixels, label } = scaleBar(view.metresPerPixel);
  const [left, bottom] = [12, view.height - 12];
  context.strokeStyle = colours[scheme].bar;
  context.fillStyle = colours[scheme].bar;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(left, bottom - 6);
  context.lineTo(left, bottom);
  context.lineTo(left + pixels, bottom);
  context.lineTo(left + pixels, bottom - 6);
  context.stroke();
  context.font = "12px system-ui, sans-serif";
  context.fillText(label, left + 4, bottom - 5);
}
