import { around, type Place } from "./projection";

/** A tile of the web's Mercator map: zoom, column from the west, row from the north. */
export interface Tile {
  z: number;
  x: number;
  y: number;
}

const radians = Math.PI / 180;

// Mercator ends before the poles.
const northernmost = 85.051;

/** columnOf a longitude at a zoom, with the part of the tile. */
export function columnOf(longitude: number, z: number): number {
  return ((around(longitude) + 180) / 360) * 2 ** z;
}

/** rowOf a latitude at a zoom, with the part of the tile. */
export function rowOf(latitude: number, z: number): number {
  const sine = Math.sin(Math.min(northernmost, Math.max(-northernmost, latitude)) * radians);
  return (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)) * 2 ** z;
}

export function longitudeOf(column: number, z: number): number {
  return (column / 2 ** z) * 360 - 180;
}

export function latitudeOf(row: number, z: number): number {
  return Math.atan(Math.sinh(Math.PI * (1 - (2 * row) / 2 ** z))) / radians;
}

const equatorMetres = 40_075_017;

/** zoomFor a scale, at which a pixel of a tile is about one of the screen, within what a map has. */
export function zoomFor(metresPerPixel: number, latitude: number, [least, most]: readonly [number, number], tilePixels = 256): number {
  const exact = Math.log2((equatorMetres * Math.cos(latitude * radians)) / (metresPerPixel * tilePixels));
  return Math.min(most, Math.max(least, Math.round(exact)));
}

/** tilesBetween two corners at a zoom; none if there are too many. */
export function tilesBetween(southWest: Place, northEast: Place, z: number, most = 200): Tile[] {
  const count = 2 ** z;
  const [top, bottom] = [Math.floor(rowOf(northEast.latitude, z)), Math.min(count - 1, Math.floor(rowOf(southWest.latitude, z)))];
  const left = Math.floor(columnOf(southWest.longitude, z));
  const wide = Math.floor(columnOf(northEast.longitude, z)) - left;
  const columns = Math.min(count, (wide < 0 ? wide + count : wide) + 1); // the view may cross the date line
  const rows = bottom - Math.max(0, top) + 1;
  if (rows < 1 || columns * rows > most) return [];
  const tiles: Tile[] = [];
  for (let y = Math.max(0, top); y <= bottom; y++) for (let i = 0; i < columns; i++) tiles.push({ z, x: (left + i) % count, y });
  return tiles;
}

/** stripsOf a tile: its rows are not evenly spaced on our map, which shows where tiles are large. */
export function stripsOf(z: number): number {
  return z < 9 ? 16 : 1;
}
