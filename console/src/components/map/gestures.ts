import type { Point } from "./projection";

/** What a user does with a map. Pixels are those of the canvas. */
export interface Gestures {
  pan(dx: number, dy: number): void;
  zoom(factor: number, at: Point | undefined): void;
  fit(): void;
  /** point says where the pointer is; undefined when it has left. */
  point(at: Point | undefined): void;
  click(at: Point): void;
  /** grab reports whether there is something at the pixel that can be dragged. */
  grab(at: Point): boolean;
  drag(at: Point): void;
  drop(at: Point): void;
}

const step = 60;
const zoomStep = 1.5;

/** keyed does what a key means for the map, and reports whether it means anything. */
export function keyed(key: string, gestures: Pick<Gestures, "pan" | "zoom" | "fit">): boolean {
  const moves: Record<string, readonly [number, number]> = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
  const move = moves[key];
  if (move) gestures.pan(...move);
  else if (key === "+" || key === "=") gestures.zoom(zoomStep, undefined);
  else if (key === "-" || key === "_") gestures.zoom(1 / zoomStep, undefined);
  else if (key === "0") gestures.fit();
  else return false;
  return true;
}

/** wheelFactor is by how much a turn of the wheel enlarges. */
export function wheelFactor(deltaY: number, deltaMode: number): number {
  const pixels = deltaMode === 1 ? 16 * deltaY : deltaMode === 2 ? 400 * deltaY : deltaY;
  return Math.exp(-Math.min(200, Math.max(-200, pixels)) / 400);
}

/** A press that moves no further than this, in pixels, is a click. */
const clickReach = 5;

/** Hands follow the pointers that are down: one pans or drags, two pinch. */
export class Hands {
  private readonly down = new Map<number, Point>();
  private start: Point | undefined;
  private moved = false;
  private dragging = false;

  constructor(private readonly gestures: Gestures) {}

  press(id: number, at: Point): void {
    this.down.set(id, at);
    if (this.down.size === 1) {
      this.start = at;
      this.moved = false;
      this.dragging = this.gestures.grab(at);
    } else if (this.dragging) {
      this.dragging = false;
      const first = [...this.down.values()][0];
      if (this.moved && first) this.gestures.drop(first); // the second finger is elsewhere
    }
  }

  move(id: number, at: Point): void {
    const before = this.down.get(id);
    if (!before) {
      this.gestures.point(at);
      return;
    }
    this.down.set(id, at);
    if (this.start && Math.hypot(at.x - this.start.x, at.y - this.start.y) > clickReach) this.moved = true;
    if (this.down.size > 1) this.pinch(id, before, at);
    else if (!this.moved) return;
    else if (this.dragging) this.gestures.drag(at);
    else this.gestures.pan(at.x - before.x, at.y - before.y);
  }

  private pinch(id: number, before: Point, at: Point): void {
    this.moved = true;
    const other = [...this.down].find(([key]) => key !== id)?.[1];
    if (!other) return;
    const [was, is] = [Math.hypot(before.x - other.x, before.y - other.y), Math.hypot(at.x - other.x, at.y - other.y)];
    this.gestures.pan((at.x - before.x) / 2, (at.y - before.y) / 2);
    if (was > 0 && is > 0) this.gestures.zoom(is / was, { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 });
  }

  release(id: number, at: Point): void {
    if (!this.down.delete(id) || this.down.size > 0) return;
    if (this.dragging && this.moved) this.gestures.drop(at);
    else if (!this.moved) this.gestures.click(at);
    this.dragging = false;
  }

  cancel(id: number): void {
    this.down.delete(id);
    this.dragging = false;
    this.gestures.point(undefined);
  }
}

/** attach listens to what a user does with the canvas, until the returned function is called. */
export function attach(canvas: HTMLCanvasElement, gestures: Gestures): () => void {
  const hands = new Hands(gestures);
  const at = (event: MouseEvent): Point => {
    const { left, top } = canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const ending = new AbortController();
  const { signal } = ending;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    hands.press(event.pointerId, at(event));
  }, { signal });
  canvas.addEventListener("pointermove", (event) => { hands.move(event.pointerId, at(event)); }, { signal });
  canvas.addEventListener("pointerup", (event) => { hands.release(event.pointerId, at(event)); }, { signal });
  canvas.addEventListener("pointercancel", (event) => { hands.cancel(event.pointerId); }, { signal });
  canvas.addEventListener("pointerleave", () => { gestures.point(undefined); }, { signal });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    gestures.zoom(wheelFactor(event.deltaY, event.deltaMode), at(event));
  }, { signal, passive: false });
  return () => { ending.abort(); };
}
