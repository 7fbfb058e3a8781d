import { Text, UnstyledButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo, useRef, useState, type KeyboardEvent } from "react";
import { useChoices } from "../../components/address";
import { many } from "../../components/figures";
import { cellsOf, colourOf, moved, placeOf, scaleOf, type Cell, type Scale } from "./heat";
import classes from "./HeatMap.module.css";
import type { Measure } from "./measures";
import { ofLastSpec, pointsOf } from "./points";
import { pageOf, type Axis, type Run } from "./round";

interface HeatMapProps {
  namespace: string;
  runs: readonly Run[];
  x: Axis;
  y: Axis | undefined;
  measure: Measure;
  /** averaged are the axes whose levels are together in a cell. */
  averaged: string[];
}

/** HeatMap has a cell for each pair of levels. Arrow keys move between cells, Enter opens the run, or lists the runs. */
export function HeatMap({ namespace, runs, x, y, measure, averaged }: HeatMapProps) {
  const cells = useMemo(() => cellsOf(runs, x, y, measure), [runs, x, y, measure]);
  const scale = useMemo(() => scaleOf(cells, measure), [cells, measure]);
  const [last, setLast] = useState<readonly [number, number]>([0, 0]);
  // Other axes may have fewer levels.
  const at = [Math.min(last[0], cells.length - 1), Math.min(last[1], x.levels.length - 1)] as const;
  const grid = useRef<HTMLTableElement>(null);
  const move = (event: KeyboardEvent) => {
    const next = moved(event.key, at, cells.length, x.levels.length);
    if (!next) return;
    event.preventDefault();
    setLast(next);
    grid.current?.querySelector<HTMLElement>(`[data-cell="${next.join("-")}"]`)?.focus();
  };
  return (
    <>
      <div className={classes.viewport}>
        <table ref={grid} role="grid" aria-label={`${measure.label} by ${x.name}${y ? ` and ${y.name}` : ""}`} className={classes.grid} onKeyDown={move}>
          <thead>
            <tr>
              <th scope="col">{y ? `${y.name} ↓ ${x.name} →` : x.name}</th>
              {x.levels.map((level) => (
                <th key={level} scope="col">
                  {level}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {cells.map((row, i) => (
              <tr key={row[0]?.y ?? i}>
                <th scope="row">{y ? row[0]?.y : measure.label}</th>
                {row.map((cell, j) => (
                  <CellOf
                    key={cell.x}
                    {...{ namespace, cell, scale, x, y, measure }}
                    place={`${i}-${j}`}
                    current={at[0] === i && at[1] === j}
                    onFocus={() => {
                      setLast([i, j]);
                    }}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Legend scale={scale} measure={measure} />
      <Text size="sm" mt={4}>
        {words(cells, measure, averaged)}
      </Text>
    </>
  );
}

/** words say what a cell is of. */
function words(cells: readonly Cell[][], measure: Measure, averaged: string[]): string {
  const most = cells.flat().reduce((n, { runs }) => Math.max(n, runs.length), 0);
  const together = averaged.length > 0 ? ` All levels of ${averaged.join(" and ")} are together.` : "";
  const earlier = cells.flat().reduce((n, { runs }) => n + runs.filter(({ measured }) => measured).length - ofLastSpec(runs).length, 0);
  const left = earlier > 0 ? ` Left out: ${many(earlier, "run")} of an earlier spec.` : "";
  const repeats = pointsOf(ofLastSpec(cells.flat().flatMap(({ runs }) => runs)));
  const unsure = repeats.some(({ runs }) => runs.length > 1 && runs[0]?.specDigest === undefined) ? " Repeats without a digest of their spec in the record may have different specs." : "";
  return most > 1 ? `A cell has up to ${many(most, "run")} and shows ${measure.together}.${together}${left}${unsure}` : "A cell is one run, and leads to it.";
}

interface CellProps {
  namespace: string;
  cell: Cell;
  scale: Scale | undefined;
  x: Axis;
  y: Axis | undefined;
  measure: Measure;
  place: string;
  current: boolean;
  onFocus: () => void;
}

function CellOf({ namespace, cell, scale, x, y, measure, place, current, onFocus }: CellProps) {
  const [choice, choose] = useChoices();
  const { fill, ink } = cell.value === undefined || !scale ? { fill: undefined, ink: undefined } : colourOf(placeOf(cell.value, scale));
  const [run] = cell.runs;
  const page = run && cell.runs.length === 1 ? pageOf(namespace, run) : undefined;
  const chosen = choice("cell") === cell.x && (choice("row") ?? "") === cell.y;
  const label = `${x.name} ${cell.x}${y ? `, ${y.name} ${cell.y}` : ""}: ${measure.label} ${cell.text}, ${many(cell.runs.length, "run")}`;
  const common = { "data-cell": place, tabIndex: current ? 0 : -1, "aria-label": label, className: classes.cell ?? "", style: { background: fill, color: ink }, onFocus };
  return (
    <td role="gridcell" aria-selected={chosen} className={chosen ? classes.chosen : undefined}>
      {page ? (
        <Link {...common} {...page}>
          {cell.text}
        </Link>
      ) : (
        <UnstyledButton
          {...common}
          aria-disabled={run === undefined}
          onClick={() => {
            if (run) choose(chosen ? { cell: undefined, row: undefined } : { cell: cell.x, row: y ? cell.y : undefined });
          }}
        >
          {cell.text}
        </UnstyledButton>
      )}
    </td>
  );
}

function Legend({ scale, measure }: { scale: Scale | undefined; measure: Measure }) {
  if (!scale) return null;
  const stops = [0, 0.25, 0.5, 0.75, 1].map((place) => colourOf(place).fill).join(", ");
  return (
    <div className={classes.legend}>
      <Text size="sm">{measure.write(scale.least)}</Text>
      <div className={classes.ramp} style={{ background: `linear-gradient(to right, ${stops})` }} aria-hidden="true" />
      <Text size="sm">
        {measure.write(scale.greatest)}
        {scale.logarithmic && " (logarithmic)"}
      </Text>
    </div>
  );
}
