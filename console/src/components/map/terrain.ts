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

/**
 * shadeAt is how bright a cell is, from 0 to 1; flat ground has 0.71 (Horn's method, IEEE Proc. 69, 1981).
 * Unknown cells have none.
 */
export function shadeAt(terrain: Terrain, column: number, row: number, exaggeration = 4): number | undefined {
  const middle = heightAt(terrain, column, row);
  if (middle === null) return undefined;
  const h = (dc: number, dr: number) => heightAt(terrain, column + dc, row + dr) ?? middle;
  const north = 111_320 * terrain.cellDegrees;
  const latitude = terrain.south + (terrain.rows - row - 0.5) * terrain.cellDegrees;
  const east = north * Math.max(Math.cos((latitude * Math.PI) / 180), 1e-3);
  const dx = (h(1, -1) + 2 * h(1, 0) + h(1, 1) - h(-1, -1) - 2 * h(-1, 0) - h(-1, 1)) / (8 * east);
  const dy = (h(-1, -1) + 2 * h(0, -1) + h(1, -1) - h(-1, 1) - 2 * h(0, 1) - h(1, 1)) / (8 * north);
  const [nx, ny] = [-exaggeration * dx, -exaggeration * dy];
  const light = (nx * Math.cos(elevation) * Math.sin(azimuth) + ny * Math.cos(elevation) * Math.cos(azimuth) + Math.sin(elevation)) / Math.hypot(nx, ny, 1);
  return Math.min(1, Math.max(0, light));
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
  for (let row = 0; row < terrain.rows; row++) {
    for (let column = 0; column < terrain.columns; column++) {
      const height = heightAt(terrain, column, row);
      const shade = shadeAt(terrain, column, row);
      if (height === null || shade === undefined) continue;
      const share = highest > lowest ? (height - lowest) / (highest - lowest) : 0;
      const light = 0.25 + 1.06 * shade;
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
