import { Text } from "@mantine/core";
import { span } from "../../components/time";

const [width, height, left, bottom] = [320, 110, 38, 18];

/** pathsOf values over time as SVG paths; a value that is not known parts them. */
export function pathsOf(points: readonly { at: number; value: number | null }[], low: number, high: number): string {
  const last = Math.max(points.at(-1)?.at ?? 0, 1);
  let path = "";
  let isOn = false;
  for (const { at, value } of points) {
    if (value === null) {
      isOn = false;
      continue;
    }
    const x = left + ((width - left - 4) * at) / last;
    const y = 4 + ((height - bottom - 8) * (high - value)) / Math.max(high - low, 1e-9);
    path += `${isOn ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    isOn = true;
  }
  return path;
}

/** Curve draws a value over the time of a scenario, with a mark at a moment. */
export function Curve({ title, unit, points, at }: { title: string; unit: string; points: readonly { at: number; value: number | null }[]; at: number }) {
  const known = points.flatMap(({ value }) => (value === null ? [] : [value]));
  const [low, high] = [Math.floor(Math.min(...known)), Math.ceil(Math.max(...known))];
  const top = Math.max(high, low + 1); // a constant has an axis too
  const last = Math.max(points.at(-1)?.at ?? 0, 1);
  const mark = left + ((width - left - 4) * Math.min(at, last)) / last;
  if (known.length === 0) return <Text size="sm">{title}: not known.</Text>;
  const now = points.findLast((point) => point.at <= at)?.value ?? null;
  return (
    <figure style={{ margin: 0 }}>
      <Text component="figcaption" size="sm">
        {title}: {now === null ? "not known" : `${now.toFixed(1)} ${unit}`} at {span(at)}
      </Text>
      <svg viewBox={`0 0 ${width} ${height}`} width="100%" role="img" aria-label={`${title} from ${low} to ${high} ${unit} over ${span(last)}`} fontSize={11} fill="currentColor">
        <path d={`M${left} 4V${height - bottom}H${width - 4}`} fill="none" stroke="currentColor" opacity={0.5} />
        <path d={pathsOf(points, low, top)} fill="none" stroke="var(--mantine-primary-color-filled)" strokeWidth={1.75} />
        <path d={`M${mark} 4V${height - bottom}`} stroke="currentColor" strokeDasharray="3 3" />
        <text x={left - 4} y={13} textAnchor="end">
          {top}
        </text>
        <text x={left - 4} y={height - bottom} textAnchor="end">
          {low}
        </text>
        <text x={width - 4} y={height - 4} textAnchor="end">
          {span(last)}
        </text>
      </svg>
    </figure>
  );
}
