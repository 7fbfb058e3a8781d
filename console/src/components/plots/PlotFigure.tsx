import { Button, Group, Loader, Paper, Stack, Text, Title, useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { cspNonce } from "../../app/nonce";
import { VirtualTable, type Column } from "../VirtualTable";
import { inksOf, type Inks } from "./inks";
import { saveSVG } from "./save";

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
  children?: ReactNode;
}

/** PlotFigure shows a plot, the same as a table, and a button that downloads it. */
export function PlotFigure({ title, file, draw, columns, rows, children }: PlotFigureProps) {
  const { data: plot } = useQuery({ queryKey: ["plot library"], queryFn: () => import("@observablehq/plot"), staleTime: Infinity });
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
    for (const svg of element.matches("svg") ? [element] : element.querySelectorAll("svg")) svg.setAttribute("aria-hidden", "true");
    place.current.replaceChildren(element);
  }, [plot, width, draw, inks]);
  return (
    <Paper withBorder p="md" component="figure" m={0} aria-labelledby={id}>
      <Group justify="space-between" align="start">
        <Title order={3} size="h4" id={id}>
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
              const svg = place.current?.querySelector("svg:not(figure > div svg)");
              if (svg) saveSVG(svg as SVGSVGElement, `${file}.svg`);
            }}
          >
            Download SVG
          </Button>
        </Group>
      </Group>
      <Stack gap="xs" mt="xs">
        <div ref={frame}>{plot ? <div ref={place} /> : <Loader aria-label="The plot is being drawn" />}</div>
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

function keyOfRow(row: TextRow): string {
  return JSON.stringify(row);
}
