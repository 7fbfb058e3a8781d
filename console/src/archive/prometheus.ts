/** Series is a line of Prometheus' text format. */
export interface Series {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** parseMetrics reads Prometheus' text format. Lines that are none of it are left out; wanted lines are chosen before they are read. */
export function parseMetrics(text: string, wanted: (line: string) => boolean = () => true): Series[] {
  const found: Series[] = [];
  for (let from = 0; from < text.length; ) {
    let to = text.indexOf("\n", from);
    if (to < 0) to = text.length;
    const line = text.slice(from, to);
    from = to + 1;
    if (line === "" || line.startsWith("#") || !wanted(line)) continue;
    const series = parseLine(line);
    if (series) found.push(series);
  }
  return found;
}

const start = /^([a-zA-Z_:][a-zA-Z0-9_:]*)/;
const label = /([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,?)\s*/y;

function parseLine(line: string): Series | undefined {
  const name = start.exec(line)?.[1];
  if (name === undefined) return undefined;
  let at = name.length;
  const labels: Record<string, string> = {};
  if (line[at] === "{") {
    at++;
    for (;;) {
      label.lastIndex = at;
      const pair = label.exec(line);
      if (!pair) break;
      labels[pair[1] ?? ""] = unescaped(pair[2] ?? "");
      at = label.lastIndex;
      if (pair[3] !== ",") break;
    }
    if (line[at] !== "}") return undefined;
    at++;
  }
  const text = line.slice(at).trim().split(/\s+/)[0];
  if (text === undefined || text === "") return undefined;
  const value = numberOf(text);
  return value === undefined ? undefined : { name, labels, value };
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
}

function numberOf(text: string): number | undefined {
  const special: Record<string, number> = { NaN: NaN, "+Inf": Infinity, Inf: Infinity, "-Inf": -Infinity };
  if (text in special) return special[text];
  const value = Number(text);
  return Number.isNaN(value) ? undefined : value;
}
