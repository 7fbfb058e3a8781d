import { Button, ColorSwatch, Group, Loader, Paper, Stack, Text, Title, useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { cspNonce } from "../../app/nonce";
import { Trouble } from "../Trouble";
import { VirtualTable, type Column } from "../VirtualTable";
import { inksOf, type Inks } from "./inks";
import { saveSVG, type LegendEntry } from "./save";

export type PlotLibrary = typeof import("@observablehq/plot");

/** A row of the table that says in text what a plot shows. */
export type TextRow = Record<string, string | number | null | undefined>;

interface PlotFigureProps {
  title: string;
  /** file is the name of the downloaded picture, without its ending. */
  file: string;
  /** draw must be the same function until the picture is to change. */
  draw: (plot: PlotLibrary, width: number, inks: Inks) => Element;
  columns: Column<TextRow>[];
  rows: TextRow[];
  /** legend says what colours mean. */
  legend?: readonly LegendEntry[];
  children?: ReactNode;
}

/** PlotFigure shows a plot, the same as a table, and a button that downloads it. */
export function PlotFigure({ title, file, draw, columns, rows, legend = [], children }: PlotFigureProps) {
  const { data: plot, error } = useQuery({ queryKey: ["plot library"], queryFn: () => import("@observablehq/plot"), staleTime: Infinity });
  const { ref: frame, width } = useElementSize();
  const place = useRef<HTMLDivElement>(null);
  const inks = inksOf(useComputedColorScheme("light"));
  const [open, setOpen] = useState(false);
  const id = useId();
  useEffect(() => {
    if (!plot || width === 0 || !place.current) return;
    const element = draw(plot, Math.floor(width), inks);
    // Plot has style elements, which the content security policy takes with the nonce only.
    for (const style of element.querySelectorAll("style")) style.nonce = cspNonce;
    element.setAttribute("aria-hidden", "true");
    place.current.replaceChildren(element);
  }, [plot, width, draw, inks]);
  return (
    <Paper withBorder p="md" component="figure" m={0} aria-labelledby={id}>
      <Group justify="space-between" align="start">
        <Title order={2} size="h4" id={id}>
          {title}
        </Title>
        <Group gap="xs">
          <Button
            size="compact-sm"
            variant="default"
            aria-expanded={open}
            onClick={() => {
              setOpen(!open);
            }}
          >
            {open ? "Hide the table" : "As a table"}
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            disabled={!plot}
            onClick={() => {
              const svg = place.current?.querySelector("svg");
              if (svg) saveSVG(svg, legend, `${file}.svg`);
            }}
          >
            Download SVG
          </Button>
        </Group>
      </Group>
      <Stack gap="xs" mt="xs">
        <Legend entries={legend} />
        <div ref={frame}>{plot ? <div ref={place} /> : error ? <Trouble error={error} title="The plot could not be drawn" /> : <Loader aria-label="The plot is being drawn" />}</div>
        {open && <VirtualTable label={title} columns={columns} rows={rows} keyOf={keyOfRow} height={320} />}
        {children !== undefined && (
          <Text component="figcaption" size="sm" c="dimmed">
            {children}
          </Text>
        )}
      </Stack>
    </Paper>
  );
}

function Legend({ entries }: { entries: readonly LegendEntry[] }) {
  if (entries.length === 0) return null;
  return (
    <Group gap="sm">
      {entries.map(({ label, colour }) => (
        <Group key={label} gap={6} wrap="nowrap">
          <ColorSwatch color={colour} size={14} radius={2} aria-hidden="true" />
          <Text size="sm">{label}</Text>
        </Group>
      ))}
    </Group>
  );
}

function keyOfRow(row: TextRow): string {
  return JSON.stringify(row);
}
