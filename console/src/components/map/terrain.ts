/** A grid of heights. Its first row is the northernmost. */
export interface Terrain {
  /** west and south edges, and the size of a cell, in degrees. */
  west: number;
  south: number;
  cellDegrees: number;
  columns: number;
  rows: number;
  /** heights in metres, row by row; null where none is known. */
  heights: readonly (number | null)[];
}

/** heightAt a column and row; the nearest one at the edges. */
function heightAt(terrain: Terrain, column: number, row: number): number | null {
  const c = Math.min(terrain.columns - 1, Math.max(0, column));
  const r = Math.min(terrain.rows - 1, Math.max(0, row));
  return terrain.heights[r * terrain.columns + c] ?? null;
}

// Light from the north-west, 45° above the horizon, as on printed maps.
const azimuth = (315 * Math.PI) / 180;
const elevation = Math.PI / 4;

/** slopeAt a cell is how much the ground rises to the east and to the north; undefined where its height is not known. */
function slopeAt(terrain: Terrain, column: number, row: number): readonly [number, number] | undefined {
  const middle = heightAt(terrain, column, row);
  if (middle === null) return undefined;
  const h = (dc: number, dr: number) => heightAt(terrain, column + dc, row + dr) ?? middle;
  const north = 111_320 * terrain.cellDegrees;
  const latitude = terrain.south + (terrain.rows - row - 0.5) * terrain.cellDegrees;
  const east = north * Math.max(Math.cos((latitude * Math.PI) / 180), 1e-3);
  const dx = (h(1, -1) + 2 * h(1, 0) + h(1, 1) - h(-1, -1) - 2 * h(-1, 0) - h(-1, 1)) / (8 * east);
  const dy = (h(-1, -1) + 2 * h(0, -1) + h(1, -1) - h(-1, 1) - 2 * h(0, 1) - h(1, 1)) / (8 * north);
  return [dx, dy];
}

/**
 * shadeAt is how bright a cell is, from 0 to 1; flat ground has 0.71 (Horn's method, IEEE Proc. 69, 1981).
 * Unknown cells have none.
 */
export function shadeAt(terrain: Terrain, column: number, row: number, exaggeration = 1): number | undefined {
  const slope = slopeAt(terrain, column, row);
  if (!slope) return undefined;
  const [nx, ny] = [-exaggeration * slope[0], -exaggeration * slope[1]];
  const light = (nx * Math.cos(elevation) * Math.sin(azimuth) + ny * Math.cos(elevation) * Math.cos(azimuth) + Math.sin(elevation)) / Math.hypot(nx, ny, 1);
  return Math.min(1, Math.max(0, light));
}

// Slopes that are drawn are about this steep, so that plains have shades and mountains do not hide what is on them.
const drawnSlope = 0.35;

/** exaggerationOf the heights of a terrain. */
export function exaggerationOf(terrain: Terrain): number {
  let [sum, count] = [0, 0];
  for (let row = 0; row < terrain.rows; row++) {
    for (let column = 0; column < terrain.columns; column++) {
      const slope = slopeAt(terrain, column, row);
      if (!slope) continue;
      sum += slope[0] ** 2 + slope[1] ** 2;
      count++;
    }
  }
  return Math.min(8, Math.max(0.1, drawnSlope / Math.max(Math.sqrt(sum / Math.max(count, 1)), 1e-6)));
}

type Colour = readonly [number, number, number];

const grounds: Record<"light" | "dark", { low: Colour; high: Colour; water: Colour }> = {
  light: { low: [226, 234, 220], high: [244, 238, 226], water: [214, 228, 238] },
  dark: { low: [32, 42, 38], high: [70, 64, 56], water: [22, 34, 46] },
};

/** shaded returns the pixels of the ground, row by row from the north-west: red, green, blue and opacity. */
export function shaded(terrain: Terrain, scheme: "light" | "dark"): Uint8ClampedArray<ArrayBuffer> {
  const pixels = new Uint8ClampedArray(4 * terrain.columns * terrain.rows);
  const known = terrain.heights.filter((height) => height !== null);
  const lowest = known.reduce((a, b) => Math.min(a, b), Infinity);
  const highest = known.reduce((a, b) => Math.max(a, b), -Infinity);
  const { low, high, water } = grounds[scheme];
  const exaggeration = exaggerationOf(terrain);
  for (let row = 0; row < terrain.rows; row++) {
    for (let column = 0; column < terrain.columns; column++) {
      const height = heightAt(terrain, column, row);
      const shade = shadeAt(terrain, column, row, exaggeration);
      if (height === null || shade === undefined) continue;
      const share = highest > lowest ? (height - lowest) / (highest - lowest) : 0;
      const light = 0.58 + 0.6 * shade;
      const at = 4 * (row * terrain.columns + column);
      for (let i = 0; i < 3; i++) {
        const ground = height <= 0 ? (water[i] ?? 0) : (low[i] ?? 0) + share * ((high[i] ?? 0) - (low[i] ?? 0));
        pixels[at + i] = ground * light;
      }
      pixels[at + 3] = 255;
    }
  }
  return pixels;
}
