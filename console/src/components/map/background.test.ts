import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TileType } from "pmtiles";
import { Background } from "./background";
import { drawGround, type Ground } from "./ground";
import { projectionAbout } from "./projection";
import type { View } from "./view";

const projection = projectionAbout({ latitude: 58, longitude: 8 });
const view: View = { centre: { x: 0, y: 0 }, metresPerPixel: 50, width: 800, height: 500 };
const bytesOfTile = 4 * 256 * 256;

let open = 0; // pictures that were not closed

beforeEach(() => {
  vi.useFakeTimers();
  open = 0;
  vi.stubGlobal("createImageBitmap", () => {
    open++;
    return Promise.resolve({ width: 256, height: 256, close: () => { open--; } });
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

interface Behaviour {
  header?: () => Promise<object>;
  tile?: () => Promise<{ data: ArrayBuffer } | undefined>;
  attribution?: string;
}

function sourceOf({ header, tile, attribution }: Behaviour = {}) {
  return {
    getHeader: vi.fn(header ?? (() => Promise.resolve({ minZoom: 0, maxZoom: 14, tileType: TileType.Png }))),
    getMetadata: () => Promise.resolve({ attribution }),
    getZxy: vi.fn(tile ?? (() => Promise.resolve({ data: new ArrayBuffer(1) }))),
  };
}

type Source = ReturnType<typeof sourceOf>;

/** over sources, one after the other, as they fail. It draws whenever something has changed. */
function over(sources: Source[], mostBytes?: number) {
  const left = [...sources];
  const background = new Background(() => (left.shift() ?? sourceOf()) as never, mostBytes);
  const context = { drawImage: vi.fn() };
  const draw = (at = view) => background.draw(context as unknown as CanvasRenderingContext2D, at, projection, "light");
  const changes = vi.fn();
  background.subscribe(changes);
  return { background, context, draw, changes };
}

const settle = () => vi.advanceTimersByTimeAsync(0);
const fail = () => Promise.reject(new Error("no connection"));

test("tiles are drawn once they are there", async () => {
  const { draw } = over([sourceOf()]);
  await settle();
  expect(draw()).toBe(false);
  await settle();
  expect(draw()).toBe(true);
});

test("a file that could not be read is read some seconds later", async () => {
  const { draw } = over([sourceOf({ header: fail })]);
  await settle();
  expect(draw()).toBe(false);
  await vi.advanceTimersByTimeAsync(11_000);
  draw();
  await settle();
  expect(draw()).toBe(true);
});

test("a tile that could not be read is asked of another source some seconds later, and not before", async () => {
  const broken = sourceOf({ tile: fail });
  const { draw } = over([broken]);
  await settle();
  draw();
  await settle();
  const asked = broken.getZxy.mock.calls.length;
  expect(draw()).toBe(false);
  expect(broken.getZxy.mock.calls.length).toBe(asked);
  await vi.advanceTimersByTimeAsync(11_000);
  draw();
  await settle();
  expect(draw()).toBe(true);
});

test("pictures have a bound in bytes, beyond which the oldest are closed", async () => {
  const { draw } = over([sourceOf()], 40 * bytesOfTile);
  await settle();
  for (let i = 0; i < 20; i++) {
    draw({ ...view, centre: { x: 40_000 * i, y: 0 } });
    await settle();
  }
  expect(open).toBeGreaterThan(10);
  expect(open).toBeLessThanOrEqual(40);
});

test("a view of more tiles than there is room for is drawn coarser, and comes to rest", async () => {
  const source = sourceOf();
  const { draw, changes } = over([source], 4 * bytesOfTile);
  await settle();
  for (let i = 0; i < 5; i++) {
    draw();
    await settle();
  }
  changes.mockClear();
  const asked = source.getZxy.mock.calls.length;
  expect(draw()).toBe(true);
  await settle();
  expect(changes).not.toHaveBeenCalled();
  expect(source.getZxy.mock.calls.length).toBe(asked);
  expect(open).toBeLessThanOrEqual(4);
});

test("the words about a map's makers are plain text", async () => {
  const { background } = over([sourceOf({ attribution: '<a href="https://example.org" onclick="x()">© Makers</a> of maps' })]);
  await settle();
  expect(background.attribution).toBe("© Makers of maps");
});

test("hills are faded only over a background that was drawn", async () => {
  const alphas: number[] = [];
  const context = new Proxy({ drawImage: () => alphas.push(context.globalAlpha) } as unknown as CanvasRenderingContext2D, {
    get: (target, name) => Reflect.get(target, name) as unknown ?? (() => undefined),
  });
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);
  const hills = async (source: Source) => {
    const { background, draw } = over([source]);
    await settle();
    draw();
    await settle();
    const terrain = { south: 57, west: 7, rows: 2, columns: 2, cellDegrees: 1, heights: [0, 1, 2, 3] } as unknown as Ground["terrain"];
    drawGround(context, view, { projection, terrain, ways: [], selected: undefined, background, withoutPlaces: false }, "light");
    return alphas.at(-1);
  };
  expect(await hills(sourceOf({ header: fail }))).toBe(1);
  expect(await hills(sourceOf({ tile: fail }))).toBe(1);
  expect(await hills(sourceOf())).toBeLessThan(1);
  vi.restoreAllMocks();
});
