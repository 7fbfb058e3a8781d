import { FetchSource, PMTiles, TileType } from "pmtiles";
import type { Projection } from "./projection";
import type { Scheme } from "./sprites";
import { latitudeOf, longitudeOf, stripsOf, tilesBetween, zoomFor, type Tile } from "./tiles";
import { drawVectorTile } from "./vector";
import { boundsOf, toPixel, type View } from "./view";

type Picture = HTMLCanvasElement | ImageBitmap;

const mostKept = 256;
const vectorPixels = 512;

/** Background is a map of tiles below everything else, which come as they are needed. */
export class Background {
  private readonly kept = new Map<string, Picture | "none" | "asked">();
  private readonly listeners = new Set<() => void>();
  private zooms: readonly [number, number] | undefined;
  private type: TileType = TileType.Unknown;

  constructor(private readonly source: Pick<PMTiles, "getHeader" | "getZxy">) {
    void this.open();
  }

  private async open(): Promise<void> {
    try {
      const { minZoom, maxZoom, tileType } = await this.source.getHeader();
      this.type = tileType;
      this.zooms = [minZoom, maxZoom];
      this.changed();
    } catch {
      // Without the file the map is as it is without a background.
    }
  }

  /** subscribe to new tiles; the function ends that. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** draw the tiles that are there, and ask for the others. */
  draw(context: CanvasRenderingContext2D, view: View, projection: Projection, scheme: Scheme): void {
    if (!this.zooms) return;
    const { west, south, east, north } = boundsOf(view);
    const [low, high] = [projection.toPlace({ x: west, y: south }), projection.toPlace({ x: east, y: north })];
    const pixels = this.type === TileType.Mvt ? vectorPixels : 256;
    const zoom = zoomFor(view.metresPerPixel, (low.latitude + high.latitude) / 2, this.zooms, pixels);
    for (const tile of tilesBetween(low, high, zoom)) {
      const picture = this.pictureOf(tile, scheme);
      if (picture) drawTile(context, view, projection, tile, picture);
    }
  }

  private pictureOf(tile: Tile, scheme: Scheme): Picture | undefined {
    const key = `${tile.z}/${tile.x}/${tile.y}${this.type === TileType.Mvt ? scheme : ""}`;
    const known = this.kept.get(key);
    if (known === undefined) void this.ask(key, tile, scheme);
    else {
      this.kept.delete(key); // the one used last stands at the end
      this.kept.set(key, known);
    }
    return typeof known === "string" ? undefined : known;
  }

  private async ask(key: string, { z, x, y }: Tile, scheme: Scheme): Promise<void> {
    this.kept.set(key, "asked");
    let picture: Picture | "none" = "none"; // also for a tile that cannot be read
    try {
      const answer = await this.source.getZxy(z, x, y);
      if (answer) picture = this.type === TileType.Mvt ? vectorPicture(answer.data, scheme) : await createImageBitmap(new Blob([answer.data]));
    } catch {
      // The map shows nothing there.
    }
    this.kept.set(key, picture);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= mostKept) break;
      this.kept.delete(oldest);
    }
    if (picture !== "none") this.changed();
  }
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
  const background = backgrounds.get(url) ?? new Background(new PMTiles(new FetchSource(url)));
  backgrounds.set(url, background);
  return background;
}
