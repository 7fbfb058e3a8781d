import { ask, unbroken } from "../kubernetes/client";

/** CSVReader splits text that comes in pieces into rows, by RFC 4180. */
export class CSVReader {
  private cell = "";
  private row: string[] = [];
  private quoted = false;
  /** A quote within a quoted cell: the cell's end, or the first of two. */
  private afterQuote = false;

  constructor(private readonly onRow: (row: string[]) => void) {}

  push(text: string): void {
    for (let at = 0; at < text.length; ) {
      if (!this.quoted) {
        at = this.unquoted(text, at);
        continue;
      }
      const end = this.afterQuote ? at : text.indexOf('"', at);
      if (this.afterQuote) {
        this.afterQuote = false;
        if (text[at] === '"') {
          this.cell += '"';
          at += 1;
        } else {
          this.quoted = false;
        }
      } else if (end < 0) {
        this.cell += text.slice(at);
        at = text.length;
      } else {
        this.cell += text.slice(at, end);
        this.afterQuote = true;
        at = end + 1;
      }
    }
  }

  private unquoted(text: string, from: number): number {
    let at = from;
    while (at < text.length && text[at] !== "," && text[at] !== "\n" && text[at] !== '"') at += 1;
    this.cell += text.slice(from, at);
    if (text[at] === ",") this.endCell();
    else if (text[at] === "\n") this.end();
    else if (text[at] === '"') this.quoted = true;
    return at + 1;
  }

  private endCell(): void {
    this.row.push(this.cell);
    this.cell = "";
  }

  /** end ends the last row, which may have no end of line. */
  end(): void {
    this.cell = this.cell.replace(/\r$/, "");
    if (this.row.length === 0 && this.cell === "") return;
    this.endCell();
    const row = this.row;
    this.row = [];
    this.quoted = false;
    this.afterQuote = false;
    this.onRow(row);
  }
}

/** Piece of a file: from an offset, at most so many bytes. */
export interface Piece {
  offset: number;
  bytes: number;
}

const wholeBytes = 8 << 20;
const pieceBytes = 256 << 10;
const pieces = 32;

/** piecesOf a file that are read: all of a small one, and of a large one pieces that lie evenly in it. */
export function piecesOf(bytes: number): Piece[] {
  if (bytes <= wholeBytes) return [{ offset: 0, bytes }];
  return Array.from({ length: pieces }, (_, i) => ({ offset: Math.round((i * (bytes - pieceBytes)) / (pieces - 1)), bytes: pieceBytes }));
}

/** Sample of the rows of a file. */
export interface Sample<Row> {
  rows: Row[];
  /** read is how many rows were read, of which these were drawn. */
  read: number;
  /** whole means that every row of the file was read. */
  whole: boolean;
}

/** Reservoir keeps a random sample of fixed size of all that it is given (Vitter's algorithm R), and the greatest of them. */
export class Reservoir<Row> {
  private readonly kept: Row[] = [];
  private readonly greatest: Row[] = [];
  private state = 1;
  read = 0;

  constructor(
    private readonly size: number,
    private readonly greatestSize = 0,
    private readonly value: (row: Row) => number = () => 0,
  ) {}

  add(row: Row): void {
    this.read += 1;
    if (this.kept.length < this.size) this.kept.push(row);
    else {
      const at = Math.floor(this.random() * this.read);
      if (at < this.size) this.kept[at] = row;
    }
    this.keepGreatest(row);
  }

  private keepGreatest(row: Row): void {
    if (this.greatestSize === 0) return;
    const last = this.greatest.at(-1);
    if (this.greatest.length === this.greatestSize && last !== undefined && this.value(row) <= this.value(last)) return;
    let at = this.greatest.length;
    while (at > 0 && this.value(this.greatest[at - 1] as Row) < this.value(row)) at -= 1;
    this.greatest.splice(at, 0, row);
    if (this.greatest.length > this.greatestSize) this.greatest.pop();
  }

  /** random numbers that are the same for each reading, so that a picture does not change (mulberry32). */
  private random(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  rows(): Row[] {
    return [...new Set([...this.kept, ...this.greatest])];
  }
}

/** A cell of a row by its column's name; empty if there is no such column. */
export type Cells = (column: string) => string;

/** readTable reads the pieces of a table and calls onRow for each whole row. Rows that a piece cuts off are left out. */
export async function readTable(path: string, parts: readonly Piece[], onRow: (cells: Cells) => void, signal: AbortSignal): Promise<void> {
  let columns: Map<string, number> | undefined;
  for (const { offset, bytes } of parts) {
    let skipped = offset === 0; // the rest of a row that began before the piece
    const reader = new CSVReader((row) => {
      if (columns === undefined) columns = new Map(row.map((name, i) => [name, i]));
      else if (!skipped) skipped = true;
      else if (row.length === columns.size) {
        const known = columns;
        onRow((column) => row[known.get(column) ?? -1] ?? "");
      }
    });
    const complete = await readPiece(`${path}?offset=${offset}`, bytes, reader, signal);
    if (complete) reader.end();
  }
}

/** readPiece reports whether the file ended within the piece. */
async function readPiece(path: string, bytes: number, reader: CSVReader, signal: AbortSignal): Promise<boolean> {
  const stop = new AbortController();
  const answer = await ask(path, { signal: AbortSignal.any([signal, stop.signal]) });
  const body = answer.body?.getReader();
  if (!body) return true;
  const decoder = new TextDecoder();
  for (let left = bytes; ; ) {
    const { done, value } = await unbroken(body.read());
    if (done) return true;
    reader.push(decoder.decode(value.subarray(0, left), { stream: true }));
    left -= value.length;
    if (left < 0) {
      stop.abort();
      await body.cancel().catch(() => undefined);
      return false;
    }
  }
}

/** secondsFrom a time zero, in Unix milliseconds, to a moment in Unix nanoseconds, which are more than a number holds exactly. */
export function secondsFrom(t0: number, nanoseconds: string): number {
  if (nanoseconds === "") return NaN;
  const whole = Number(nanoseconds.slice(0, -9));
  return whole - t0 / 1000 + Number(nanoseconds.slice(-9)) / 1e9;
}
