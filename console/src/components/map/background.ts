import { FetchSource, PMTiles, TileType } from "pmtiles";
import type { Projection } from "./projection";
import type { Scheme } from "./sprites";
import { latitudeOf, longitudeOf, stripsOf, tilesBetween, zoomFor, type Tile } from "./tiles";
import { drawVectorTile } from "./vector";
import { boundsOf, toPixel, type View } from "./view";

type Picture = HTMLCanvasElement | ImageBitmap;
type Source = Pick<PMTiles, "getHeader" | "getMetadata" | "getZxy">;

/** Kept is what is known of a tile: its picture, that there is none, or that it was asked for. */
interface Kept {
  picture: Picture | "none" | "asked";
  /** draw is the number of the last one that needed the tile. */
  draw: number;
}

const vectorPixels = 512;
const rasterPixels = 256;
const mostBytesOfPictures = 128 << 20;
const retryMilliseconds = 10_000;

/** Background is a map of tiles below everything else, which come as they are needed. */
export class Background {
  private readonly kept = new Map<string, Kept>();
  private readonly listeners = new Set<() => void>();
  private source: Source | undefined;
  private waiting: ReturnType<typeof setTimeout> | undefined;
  private zooms: readonly [number, number] | undefined;
  private type: TileType = TileType.Unknown;
  private bytes = 0;
  private draws = 0;
  private words = "";

  /** connect makes a source, and another one some time after a failure: a source remembers what has failed. */
  constructor(
    private readonly connect: () => Source,
    private readonly mostBytes = mostBytesOfPictures,
  ) {}

  private async open(): Promise<void> {
    const source = this.connect();
    this.source = source;
    try {
      const { minZoom, maxZoom, tileType } = await source.getHeader();
      this.type = tileType;
      this.zooms = [minZoom, maxZoom];
      this.words = await source.getMetadata().then(attributionOf, () => "");
      this.changed();
    } catch {
      // Until the file can be read the map is as it is without a background.
      this.reopenLater(source);
    }
  }

  private reopenLater(failed: Source): void {
    if (this.source !== failed) return;
    this.source = undefined;
    this.waiting = setTimeout(() => {
      this.waiting = undefined;
      if (this.listeners.size > 0) void this.open();
    }, retryMilliseconds);
  }

  /** attribution of the map's makers, as plain text. */
  get attribution(): string {
    return this.words;
  }

  /** subscribe to new tiles; the function ends that. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    if (!this.source && this.waiting === undefined) void this.open();
    return () => this.listeners.delete(listener);
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** draw the tiles that are there, and ask for the others. It reports whether there were any. */
  draw(context: CanvasRenderingContext2D, view: View, projection: Projection, scheme: Scheme): boolean {
    this.draws++;
    let drew = false;
    for (const tile of this.tilesOf(view, projection)) {
      const picture = this.pictureOf(tile, scheme);
      if (!picture) continue;
      drawTile(context, view, projection, tile, picture);
      drew = true;
    }
    return drew;
  }

  /** tilesOf a view, of a zoom at which all of them find room. */
  private tilesOf(view: View, projection: Projection): Tile[] {
    if (!this.zooms) return [];
    const { west, south, east, north } = boundsOf(view);
    const [low, high] = [projection.toPlace({ x: west, y: south }), projection.toPlace({ x: east, y: north })];
    const isVector = this.type === TileType.Mvt;
    const most = this.mostBytes / bytesOf(isVector ? 2 * vectorPixels : rasterPixels);
    let zoom = zoomFor(view.metresPerPixel, (low.latitude + high.latitude) / 2, this.zooms, isVector ? vectorPixels : rasterPixels);
    let tiles = tilesBetween(low, high, zoom);
    while (tiles.length > most && zoom > this.zooms[0]) tiles = tilesBetween(low, high, --zoom);
    return tiles;
  }

  private pictureOf(tile: Tile, scheme: Scheme): Picture | undefined {
    const key = `${tile.z}/${tile.x}/${tile.y}${this.type === TileType.Mvt ? scheme : ""}`;
    const known = this.kept.get(key);
    if (known) {
      known.draw = this.draws;
      this.kept.delete(key); // the one used last stands at the end
      this.kept.set(key, known);
    } else if (this.source) void this.ask(this.source, key, tile, scheme);
    return known && typeof known.picture !== "string" ? known.picture : undefined;
  }

  private async ask(source: Source, key: string, { z, x, y }: Tile, scheme: Scheme): Promise<void> {
    const entry: Kept = { picture: "asked", draw: this.draws };
    this.kept.set(key, entry);
    let data: ArrayBuffer | undefined;
    try {
      data = (await source.getZxy(z, x, y))?.data;
    } catch {
      this.kept.delete(key);
      this.reopenLater(source);
      return;
    }
    entry.picture = data ? await this.drawn(data, scheme) : "none";
    if (entry.picture === "none") return;
    this.bytes += bytesOf(entry.picture.width, entry.picture.height);
    this.makeRoom();
    this.changed();
  }

  /** drawn is the picture of a tile; none if its data are of no such kind. */
  private async drawn(data: ArrayBuffer, scheme: Scheme): Promise<Picture | "none"> {
    try {
      return this.type === TileType.Mvt ? vectorPicture(data, scheme) : await createImageBitmap(new Blob([data]));
    } catch {
      return "none";
    }
  }

  /** makeRoom forgets the pictures that were used longest ago. Those that maps show stay, as they would be asked for again. */
  private makeRoom(): void {
    const shown = this.draws - Math.max(1, this.listeners.size);
    for (const [key, { picture, draw }] of this.kept) {
      if (this.bytes <= this.mostBytes || draw > shown) return;
      if (typeof picture === "string") continue;
      this.kept.delete(key);
      this.bytes -= bytesOf(picture.width, picture.height);
      if ("close" in picture) picture.close();
      else picture.width = picture.height = 0;
    }
  }
}

function bytesOf(width: number, height = width): number {
  return 4 * width * height;
}

/** attributionOf a file's metadata. Makers of maps write it with links. */
function attributionOf(metadata: unknown): string {
  const { attribution } = (typeof metadata === "object" && metadata !== null ? metadata : {}) as { attribution?: unknown };
  return typeof attribution === "string" ? new DOMParser().parseFromString(attribution, "text/html").body.textContent.trim() : "";
}

function vectorPicture(data: ArrayBuffer, scheme: Scheme): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 2 * vectorPixels; // sharp on dense screens, and between zooms
  const context = canvas.getContext("2d");
  if (context) drawVectorTile(context, data, canvas.width, scheme);
  return canvas;
}

/** drawTile in strips, each between the pixels of its own rows. */
function drawTile(context: CanvasRenderingContext2D, view: View, projection: Projection, { z, x, y }: Tile, picture: Picture): void {
  const strips = stripsOf(z);
  const pixelOf = (column: number, row: number) => toPixel(view, projection.toMetres({ latitude: latitudeOf(row, z), longitude: longitudeOf(column, z) }));
  // The middle decides on which side of the date line the tile lies.
  const middle = pixelOf(x + 0.5, y + 0.5).x;
  const half = Math.abs(projection.toMetres({ latitude: 0, longitude: projection.centre.longitude + 180 / 2 ** z }).x) / view.metresPerPixel;
  for (let i = 0; i < strips; i++) {
    const [top, bottom] = [pixelOf(x + 0.5, y + i / strips).y, pixelOf(x + 0.5, y + (i + 1) / strips).y];
    // Half a pixel more hides the seams.
    context.drawImage(picture, 0, (i * picture.height) / strips, picture.width, picture.height / strips, middle - half, top, 2 * half + 0.5, bottom - top + 0.5);
  }
}

const backgrounds = new Map<string, Background>();

/** backgroundAt an address of this origin; all maps of the page share it. */
export function backgroundAt(url: string): Background {
  const background = backgrounds.get(url) ?? new Background(() => new PMTiles(new FetchSource(url)));
  backgrounds.set(url, background);
  return background;
}
