/** Line of a log. */
export interface Line {
  /** number of the line since reading began, from 0. */
  number: number;
  text: string;
  /** milliseconds of its time, Unix epoch, where it has one. */
  milliseconds: number | undefined;
}

// Longer lines are cut, to fit a screen.
const longest = 4096;

const mostCharacters = 64 << 20;

/** Lines collects lines from pieces of text, and keeps the newest, or the first. */
export class Lines {
  private kept: Line[] = [];
  /** lengths of the kept lines before they were cut, as browsers keep the whole text; characters is their sum. */
  private lengths: number[] = [];
  private characters = 0;
  private partial = "";
  private count = 0;
  private skipping: boolean;

  constructor(
    private readonly most: number,
    /** beginsWithin is set if the first piece may begin within a line, which is then left out. */
    beginsWithin = false,
    /** keepsFirst is set to keep the first lines, and to leave out those for which there is no room. */
    private readonly keepsFirst = false,
    /** room is the most characters of all kept lines. */
    private readonly room = mostCharacters,
  ) {
    this.skipping = beginsWithin;
  }

  /** add a piece of text, which may end anywhere. */
  add(piece: string): void {
    const parts = (this.partial + piece).split("\n");
    this.partial = (parts.pop() ?? "").slice(-1_000_000);
    for (const text of parts) this.push(text);
    // Some more are kept, so that not every piece copies all.
    if (!this.keepsFirst && (this.kept.length > 1.2 * this.most || this.characters > 1.2 * this.room)) this.forget();
  }

  private forget(): void {
    let oldest = 0;
    while (oldest < this.kept.length - 1 && (this.kept.length - oldest > this.most || this.characters > this.room)) {
      this.characters -= this.lengths[oldest++] ?? 0;
    }
    this.kept = this.kept.slice(oldest);
    this.lengths = this.lengths.slice(oldest);
  }

  /** end adds what is left without an end of line. */
  end(): void {
    if (this.partial !== "") this.push(this.partial);
    this.partial = "";
  }

  private push(text: string): void {
    if (this.skipping) {
      this.skipping = false;
      return;
    }
    if (this.isFull) return;
    this.kept.push({ number: this.count++, text: text.length > longest ? `${text.slice(0, longest)} …` : text, milliseconds: timeOf(text) });
    this.lengths.push(text.length);
    this.characters += text.length;
  }

  /** isFull is set when lines that come are left out. */
  get isFull(): boolean {
    return this.keepsFirst && (this.count >= this.most || this.characters >= this.room);
  }

  /** newest lines that are kept, in another array each time. */
  snapshot(): Line[] {
    return this.kept.slice(-this.most);
  }

  /** forgotten lines were read and are no longer kept. */
  get forgotten(): number {
    return Math.max(0, this.count - Math.min(this.kept.length, this.most));
  }
}

const archived = /^\{"ts":(\d{16,19})[,}]/;
const written = /^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))/;

/** timeOf a line: its field ts in nanoseconds, or the time with which it begins. */
export function timeOf(text: string): number | undefined {
  const ts = archived.exec(text)?.[1];
  if (ts !== undefined) return Number(ts) / 1e6;
  const time = written.exec(text)?.[1];
  if (time === undefined) return undefined;
  const milliseconds = Date.parse(time);
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}

/** matching lines have every word, in any case. */
export function matching<T>(lines: T[], words: string, textOf: (line: T) => string): T[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return lines;
  return lines.filter((line) => {
    const text = textOf(line).toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
