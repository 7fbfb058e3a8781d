import type { Background } from "./background";
import { drawGround, type Way } from "./ground";
import { nearest, nearestSegment } from "./hit";
import { drawMoving, type Frame } from "./moving";
import { centreOf, extended, projectionAbout, type Bounds, type Place, type Point, type Projection } from "./projection";
import { drawn, emptyScene, type MapLink, type Scene } from "./scene";
import { loadSymbols, Sprites, type Scheme, type SymbolMaker } from "./sprites";
import { placeAt, reportedAt } from "./tracks";
import { fitted, resized, toMetres, toPixel, type View } from "./view";

// No more than ten pictures a second, and no more than a fifth of the time for drawing.
const shortestPauseMilliseconds = 100;
const pausePerDrawing = 4;

/** Painter draws a scene on two canvases: the ground, which is drawn when the view changes, and what moves on it. */
export class Painter {
  private scene: Scene = emptyScene;
  private at = 0;
  private view: View = fitted(undefined, 1, 1);
  private fits = true; // the user has not moved the view
  private projection: Projection = projectionAbout({ latitude: 0, longitude: 0 });
  private ways: Way[] = [];
  private links: readonly MapLink[] = [];
  private indexOf = new Map<string, number>();
  private pixels: (Point | undefined)[] = [];
  private scheme: Scheme = "light";
  private ratio = 1;
  private symbols: SymbolMaker | undefined;
  private sprites = new Sprites("light", 1, undefined);
  private hovered: string | undefined;
  private hoveredLink: MapLink | undefined;
  private groundIsStale = true;
  private movingIsStale = true;
  private waiting: number | undefined;
  private pausing: ReturnType<typeof setTimeout> | undefined;
  private nextDrawing = 0;
  private ended = false;
  private background: Background | undefined;
  private leaveBackground: (() => void) | undefined;

  constructor(
    private readonly ground: HTMLCanvasElement,
    private readonly moving: HTMLCanvasElement,
  ) {
    void loadSymbols()
      .then((symbols) => {
        this.symbols = symbols;
        this.renewSprites();
      })
      .catch(() => undefined); // dots do without the library
  }

  end(): void {
    this.ended = true;
    this.leaveBackground?.();
    clearTimeout(this.pausing);
    if (this.waiting !== undefined) cancelAnimationFrame(this.waiting);
  }

  /** setBackground map below all, or none. */
  setBackground(background: Background | undefined): void {
    this.leaveBackground?.();
    this.background = background;
    const redraw = () => {
      this.groundIsStale = true;
      this.changed();
    };
    this.leaveBackground = background?.subscribe(redraw);
    redraw();
  }

  setScene(scene: Scene): void {
    const before = this.scene;
    this.scene = scene;
    this.links = drawn(scene.links, scene.selected);
    if (before.inCircle !== scene.inCircle) this.fits = true; // the places are others
    if (before.nodes !== scene.nodes || before.terrain !== scene.terrain) this.placeNodes();
    if (before.selected !== scene.selected) this.groundIsStale = true;
    this.changed();
  }

  private placeNodes(): void {
    this.indexOf = new Map(this.scene.nodes.map((node, index) => [node.name, index]));
    const centre = centreOf(this.places()) ?? this.scene.home;
    // The projection stays while the view does, so that nothing jumps under the user's hand.
    if (centre && this.fits) this.projection = projectionAbout(centre);
    this.ways = this.scene.nodes.map(({ name, track }) => {
      const metres = track.map((place) => this.projection.toMetres(place));
      return { name, points: Float64Array.from(metres.flatMap(({ x, y }) => [x, y])) };
    });
    this.groundIsStale = true;
    if (this.fits) this.fit();
  }

  private *places(): Generator<Place> {
    for (const node of this.scene.nodes) yield* node.track;
    for (const jammer of this.scene.jammers) yield jammer.place;
  }

  /** fit shows everything. */
  fit(): void {
    let bounds: Bounds | undefined;
    for (const place of this.places()) bounds = extended(bounds, this.projection.toMetres(place));
    this.view = fitted(bounds, this.view.width, this.view.height);
    this.fits = true;
    this.groundIsStale = true;
    this.changed(true);
  }

  /** setTime in seconds after T0. Nothing is drawn if nothing has moved by a third of a pixel. */
  setTime(at: number): void {
    const before = this.at;
    this.at = at;
    if (this.movingIsStale || this.scene.nodes.some((node, index) => this.hasMoved(node.track, index) || reportedAt(node.reported, before) !== reportedAt(node.reported, at))) this.changed();
  }

  private hasMoved(track: Scene["nodes"][number]["track"], index: number): boolean {
    const before = this.pixels[index];
    const place = placeAt(track, this.at);
    if (!before || !place) return Boolean(before) !== Boolean(place);
    const now = this.pixelOf(place);
    return Math.abs(now.x - before.x) + Math.abs(now.y - before.y) > 0.3;
  }

  setScheme(scheme: Scheme, ratio: number): void {
    if (scheme === this.scheme && ratio === this.ratio) return;
    this.scheme = scheme;
    this.ratio = ratio;
    this.resize(this.view.width, this.view.height);
    this.renewSprites();
  }

  private renewSprites(): void {
    this.sprites = new Sprites(this.scheme, this.ratio, this.symbols);
    this.changed(true);
  }

  resize(width: number, height: number): void {
    this.view = resized(this.view, width, height);
    for (const canvas of [this.ground, this.moving]) {
      canvas.width = Math.max(1, Math.round(width * this.ratio));
      canvas.height = Math.max(1, Math.round(height * this.ratio));
    }
    this.groundIsStale = true;
    if (this.fits) this.fit();
    this.changed(true);
  }

  /** change the view, as a user does. */
  change(how: (view: View) => View): void {
    this.view = how(this.view);
    this.fits = false;
    this.groundIsStale = true;
    this.changed(true);
  }

  /** hold the view where it is, whatever comes. */
  hold(): void {
    this.fits = false;
  }

  /** show brings a place into the middle. */
  show(place: Place): void {
    this.change((view) => ({ ...view, centre: this.projection.toMetres(place) }));
  }

  hover(node: string | undefined, link: MapLink | undefined): void {
    if (node === this.hovered && link === this.hoveredLink) return;
    this.hovered = node;
    this.hoveredLink = link;
    this.changed(true);
  }

  placeOf(pixel: Point): Place {
    return this.projection.toPlace(toMetres(this.view, pixel));
  }

  placeInTheMiddle(): Place {
    return this.projection.toPlace(this.view.centre);
  }

  pixelOf(place: Place): Point {
    return toPixel(this.view, this.projection.toMetres(place));
  }

  nodeAt(pixel: Point): string | undefined {
    return this.scene.nodes[nearest(this.pixels, pixel, 18)]?.name;
  }

  handleAt(pixel: Point): string | undefined {
    return this.scene.handles[nearest(this.scene.handles.map((handle) => this.pixelOf(handle.place)), pixel, 14)]?.id;
  }

  linkAt(pixel: Point): MapLink | undefined {
    const segments = this.links.map((link) => {
      const from = this.pixels[this.indexOf.get(link.from) ?? -1];
      const to = this.pixels[this.indexOf.get(link.to) ?? -1];
      return from && to ? ([from, to] as const) : undefined;
    });
    return this.links[nearestSegment(segments, pixel, 5)];
  }

  /** changed has a picture drawn soon; at once if it is urgent, as the user waits for it. */
  private changed(urgent = false): void {
    this.movingIsStale = true;
    if (this.waiting !== undefined || this.ended) return;
    const pause = urgent ? 0 : this.nextDrawing - performance.now();
    if (pause <= 0) {
      clearTimeout(this.pausing);
      this.pausing = undefined;
      this.waiting = requestAnimationFrame(this.draw);
      return;
    }
    this.pausing ??= setTimeout(() => {
      this.pausing = undefined;
      this.waiting ??= requestAnimationFrame(this.draw);
    }, pause);
  }

  private readonly draw = (): void => {
    this.waiting = undefined;
    const start = performance.now();
    this.paint();
    const end = performance.now();
    this.nextDrawing = start + Math.max(shortestPauseMilliseconds, pausePerDrawing * (end - start));
  };

  private paint(): void {
    const ground = this.ground.getContext("2d");
    const moving = this.moving.getContext("2d");
    if (!ground || !moving) return;
    if (this.groundIsStale) {
      ground.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      drawGround(ground, this.view, { projection: this.projection, terrain: this.scene.terrain, ways: this.ways, selected: this.scene.selected, background: this.background, withoutPlaces: this.scene.inCircle === true }, this.scheme);
      this.groundIsStale = false;
    }
    moving.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    drawMoving(moving, this.frame());
    this.movingIsStale = false;
  }

  private frame(): Frame {
    this.pixels = this.scene.nodes.map(({ track }) => {
      const place = placeAt(track, this.at);
      return place && this.pixelOf(place);
    });
    const reported = this.scene.nodes.map((node) => {
      const place = reportedAt(node.reported, this.at);
      return place && this.pixelOf(place);
    });
    const { scene, view, scheme, sprites, links, pixels, indexOf, hovered, hoveredLink } = this;
    const jammers = scene.jammers.map(({ name, place, rangeMetres }) => ({ name, pixel: this.pixelOf(place), radius: rangeMetres === undefined ? undefined : rangeMetres / view.metresPerPixel }));
    const handles = scene.handles.map(({ place, label, selected }) => ({ pixel: this.pixelOf(place), label, selected }));
    return { scene, view, scheme, sprites, links, pixels, reported, indexOf, jammers, handles, hovered, hoveredLink };
  }
}
