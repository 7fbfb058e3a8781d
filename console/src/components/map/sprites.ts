import type { Point } from "./projection";

export type Scheme = "light" | "dark";

/** A picture that is drawn once and then only copied. Sizes are in CSS pixels. */
export interface Sprite {
  image: HTMLCanvasElement;
  width: number;
  height: number;
  /** anchor is the point of the picture that stands on the place. */
  anchor: Point;
}

/** What milsymbol does for the map. */
export type SymbolMaker = (symbol: string, size: number, ratio: number) => Sprite;

let maker: Promise<SymbolMaker> | undefined;

/** loadSymbols loads the library of symbols, which is large, when a map is shown for the first time. */
export function loadSymbols(): Promise<SymbolMaker> {
  maker ??= import("milsymbol").then(({ default: ms }) => (symbol, size, ratio) => {
    const made = new ms.Symbol(symbol, { size, outlineWidth: 4, outlineColor: "rgba(255,255,255,0.7)" });
    const { width, height } = made.getSize();
    return { image: made.asCanvas(ratio), width, height, anchor: made.getAnchor() };
  });
  return maker;
}

export const ink: Record<Scheme, { text: string; halo: string; dot: string; edge: string; mark: string; jammer: string }> = {
  light: { text: "#1b1f22", halo: "rgba(255,255,255,0.85)", dot: "#0072B2", edge: "#ffffff", mark: "#1b1f22", jammer: "#a83a00" },
  dark: { text: "#f1f3f5", halo: "rgba(20,22,24,0.85)", dot: "#56B4E9", edge: "#141618", mark: "#ffffff", jammer: "#ff8a4c" },
};

export const labelHeight = 15;
const font = "12px system-ui, sans-serif";

/** Sprites of one colour scheme and density of pixels. */
export class Sprites {
  private readonly kept = new Map<string, Sprite>();

  constructor(
    private readonly scheme: Scheme,
    private readonly ratio: number,
    private readonly symbols: SymbolMaker | undefined,
  ) {}

  /** node is a symbol if there is room and the library is there; else a dot. A silent one is an octagon with a bar. */
  node(symbol: string, silent: boolean, asSymbol: boolean): Sprite {
    const make = this.symbols;
    if (!asSymbol || !make) return this.keep(`dot ${silent}`, () => (silent ? this.silentDot() : this.dot()));
    return this.keep(`${symbol} ${silent}`, () => {
      const sprite = make(symbol, 22, this.ratio);
      return silent ? this.barred(sprite) : sprite;
    });
  }

  label(text: string, strong: boolean): Sprite {
    return this.keep(`label ${strong} ${text}`, () => {
      const face = strong ? `bold ${font}` : font;
      const width = Math.ceil(measured(text, face)) + 4;
      return this.picture(width, labelHeight, { x: 0, y: labelHeight / 2 }, (context) => {
        const { text: fill, halo } = ink[this.scheme];
        context.font = face;
        context.textBaseline = "middle";
        context.lineJoin = "round";
        context.lineWidth = 3;
        context.strokeStyle = halo;
        context.strokeText(text, 2, labelHeight / 2);
        context.fillStyle = fill;
        context.fillText(text, 2, labelHeight / 2);
      });
    });
  }

  private dot(): Sprite {
    return this.picture(12, 12, { x: 6, y: 6 }, (context) => {
      context.beginPath();
      context.arc(6, 6, 4.5, 0, 2 * Math.PI);
      this.fillDot(context);
    });
  }

  private silentDot(): Sprite {
    return this.picture(16, 16, { x: 8, y: 8 }, (context) => {
      octagon(context, 8, 8, 6.5);
      context.fillStyle = ink[this.scheme].edge;
      context.fill();
      this.bar(context, 8, 8, 6.5);
    });
  }

  private fillDot(context: CanvasRenderingContext2D): void {
    const { dot, edge } = ink[this.scheme];
    context.fillStyle = dot;
    context.strokeStyle = edge;
    context.lineWidth = 1.5;
    context.fill();
    context.stroke();
  }

  private barred(sprite: Sprite): Sprite {
    const { width, height, anchor, image } = sprite;
    return this.picture(width + 16, height + 16, { x: anchor.x + 8, y: anchor.y + 8 }, (context) => {
      context.globalAlpha = 0.6;
      context.drawImage(image, 8, 8, width, height);
      context.globalAlpha = 1;
      this.bar(context, width / 2 + 8, height / 2 + 8, Math.max(width, height) / 2 + 4);
    });
  }

  private bar(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
    octagon(context, x, y, radius);
    const reach = radius * Math.SQRT1_2;
    context.moveTo(x - reach, y + reach);
    context.lineTo(x + reach, y - reach);
    context.strokeStyle = ink[this.scheme].mark;
    context.lineWidth = 1.75;
    context.stroke();
  }

  private keep(key: string, make: () => Sprite): Sprite {
    const known = this.kept.get(key);
    if (known) return known;
    const made = make();
    this.kept.set(key, made);
    return made;
  }

  private picture(width: number, height: number, anchor: Point, draw: (context: CanvasRenderingContext2D) => void): Sprite {
    const image = document.createElement("canvas");
    image.width = Math.ceil(width * this.ratio);
    image.height = Math.ceil(height * this.ratio);
    const context = image.getContext("2d");
    if (context) {
      context.scale(this.ratio, this.ratio);
      draw(context);
    }
    return { image, width, height, anchor };
  }
}

function octagon(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  context.beginPath();
  for (let i = 0; i < 8; i++) {
    const angle = ((i + 0.5) * Math.PI) / 4;
    context.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
  }
  context.closePath();
}

let ruler: CanvasRenderingContext2D | null | undefined;

function measured(text: string, face: string): number {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return 7 * text.length;
  ruler.font = face;
  return ruler.measureText(text).width;
}
