import { Stack } from "@mantine/core";
import { useCallback, useMemo } from "react";
import { boxesOf } from "../../components/plots/boxes";
import { PlotFigure, type PlotLibrary, type TextRow } from "../../components/plots/PlotFigure";
import type { Inks } from "../../components/plots/inks";
import { BoxFigure } from "../../components/plots/BoxFigure";
import { DotsFigure } from "./DotsFigure";
import { chosenLosses, drawLosses, lossColumns, lossesOfRun, lossLegend, mostLosses } from "./losses";
import type { PartProps } from "./part";

/** Delays shows delays by group and publisher, single deliveries over time, and losses. */
export function Delays({ namespace, uid, state, results }: PartProps) {
  const groups = useMemo(() => boxesOf((results.groups ?? []).map(({ name, delaySeconds }) => ({ name, quantiles: delaySeconds }))), [results]);
  const publishers = useMemo(() => boxesOf((results.publishers ?? []).map(({ name, delaySeconds }) => ({ name, quantiles: delaySeconds }))), [results]);
  const name = state.plan.name;
  return (
    <Stack>
      <BoxFigure title="Delay by group" file={`${name}-delays-by-group`} boxes={groups} what="delay" none="nothing was received." />
      <BoxFigure title="Delay by publisher" file={`${name}-delays-by-publisher`} boxes={publishers} what="delay" none="nothing was received." />
      <DotsFigure
        namespace={namespace}
        uid={uid}
        t0={state.plan.t0}
        title="Delay of deliveries over time"
        path="results/deliveries.csv"
        column="delaySeconds"
        of="deliveries"
        file={`${name}-delays-over-time`}
      />
      <Losses {...{ results, name }} />
    </Stack>
  );
}

function Losses({ results, name }: Pick<PartProps, "results"> & { name: string }) {
  const losses = useMemo(() => lossesOfRun(results), [results]);
  const rows = useMemo(() => losses.map((loss): TextRow => ({ ...loss })), [losses]);
  const draw = useCallback((plot: PlotLibrary, width: number, inks: Inks) => drawLosses(plot, chosenLosses(losses), width, inks), [losses]);
  return (
    <PlotFigure title="Deliveries that did not arrive" file={`${name}-loss`} draw={draw} columns={lossColumns} rows={rows} legend={lossLegend}>
      The line is the 95 % interval of both together. Groups come first, then publishers.
      {losses.length > mostLosses && ` The ${mostLosses} with the greatest losses of ${losses.length} are drawn; the table has all.`}
    </PlotFigure>
  );
}
