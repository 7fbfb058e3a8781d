import { queryOptions } from "@tanstack/react-query";
import { piecesOf, readTable, Reservoir, secondsFrom, type Cells, type Sample } from "../../archive/csv";
import { filePath } from "../../archive/runs";
import type { ManifestFile } from "../../archive/types";

/** Dot is one delivery, or one request: when it was sent, after T0, and how long it took. */
export interface Dot {
  at: number;
  seconds: number;
  publisher: string;
  subscriber: string;
  id: string;
}

// As many dots are drawn without delay, and show the shape of far more.
const dots = 2500;
const slowest = 250;

/** dotOf a row of a table; undefined of one that took no time, as it was lost or has failed. */
export function dotOf(cells: Cells, column: string, t0: number): Dot | undefined {
  const text = cells(column);
  if (text === "") return undefined;
  return { at: secondsFrom(t0, cells("sent")), seconds: Number(text), publisher: cells("publisher"), subscriber: cells("subscriber"), id: cells("id") };
}

/** dotsQuery reads a sample of the rows of results/deliveries.csv or requests.csv that have the column. */
export function dotsQuery(namespace: string, uid: string, file: ManifestFile | undefined, column: string, t0: string) {
  return queryOptions({
    queryKey: ["run", namespace, uid, "dots", file?.path],
    enabled: file !== undefined,
    staleTime: Infinity,
    queryFn: async ({ signal }): Promise<Sample<Dot>> => {
      const { path, bytes } = file as ManifestFile;
      const parts = piecesOf(bytes);
      const reservoir = new Reservoir<Dot>(dots, slowest, ({ seconds }) => seconds);
      const start = Date.parse(t0);
      await readTable(
        filePath(namespace, uid, path),
        parts,
        (cells) => {
          const dot = dotOf(cells, column, start);
          if (dot) reservoir.add(dot);
        },
        signal,
      );
      return { rows: reservoir.rows().sort((a, b) => a.at - b.at), read: reservoir.read, whole: parts.length === 1 };
    },
  });
}

/** sampleWords says what part of all is drawn. */
export function sampleWords({ rows, read, whole }: Sample<unknown>, of: string, file: string): string {
  const exact = "Exact figures are in the table of figures.";
  if (whole && rows.length === read) return `All ${read} ${of} are drawn.`;
  if (whole) return `A random sample of ${rows.length} of ${read} ${of} is drawn, with the slowest ${slowest}. ${exact}`;
  return `A random sample of ${rows.length} ${of} is drawn, from parts all over ${file}, which is too large to be read here. ${exact}`;
}
