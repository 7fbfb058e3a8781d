import type { Point } from "./projection";

/** A text that is to stand beside a point, if there is room. */
export interface Wish {
  point: Point;
  width: number;
  /** distance from the point to the text's edge. */
  gap: number;
}

/** Where a text stands: its left edge, and the middle of its height. */
export type Placed = Point | undefined;

/** A rectangle in pixels. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const cell = 64;

/**
 * placed puts each text right of, left of, below or above its point, where it overlaps no obstacle and no text that came before.
 * Earlier wishes win. A text without room is left out.
 */
export function placed(wishes: readonly Wish[], height: number, most = Infinity, obstacles: readonly Box[] = []): Placed[] {
  const taken = new Map<string, Box[]>();
  const take = (box: Box) => {
    for (const key of cellsOf(box)) {
      const others = taken.get(key);
      if (others) others.push(box);
      else taken.set(key, [box]);
    }
  };
  obstacles.forEach(take);
  let count = 0;
  return wishes.map((wish) => {
    if (count >= most) return undefined;
    for (const at of positions(wish, height)) {
      const box = { left: at.x, top: at.y - height / 2, right: at.x + wish.width, bottom: at.y + height / 2 };
      if (cellsOf(box).some((key) => taken.get(key)?.some((other) => overlap(box, other)))) continue;
      take(box);
      count++;
      return at;
    }
    return undefined;
  });
}

function positions({ point, width, gap }: Wish, height: number): Point[] {
  const down = gap + height / 2;
  return [
    { x: point.x + gap, y: point.y },
    { x: point.x - gap - width, y: point.y },
    { x: point.x - width / 2, y: point.y + down },
    { x: point.x - width / 2, y: point.y - down },
  ];
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

function cellsOf(box: Box): string[] {
  const keys: string[] = [];
  for (let x = Math.floor(box.left / cell); x <= Math.floor(box.right / cell); x++) {
    for (let y = Math.floor(box.top / cell); y <= Math.floor(box.bottom / cell); y++) keys.push(`${x},${y}`);
  }
  return keys;
}
