import { Group, Loader, Select, Stack, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { useChoices } from "../../components/address";
import { many } from "../../components/figures";
import { Trouble } from "../../components/Trouble";
import type { Campaign } from "../../types";
import { choiceOf } from "./choice";
import { HeatMap } from "./HeatMap";
import { measureOf, measures } from "./measures";
import { RunTable } from "./RunTable";
import { axesOf, selected, type Run } from "./round";
import { useResults } from "./useResults";

interface RoundProps {
  namespace: string;
  campaign: Campaign | undefined;
  runs: Run[];
  /** archived runs have no figures but those of their results. */
  archived: boolean;
}

/** Round shows the runs of a round as a heat map over two axes, and as a table. */
export function Round({ namespace, campaign, runs: listed, archived }: RoundProps) {
  const [choice, choose] = useChoices();
  const measure = measureOf(choice("measure"));
  const { runs, read, wanted, error } = useResults(namespace, listed, archived || measure.needsResults);
  const axes = useMemo(() => axesOf(campaign, runs), [campaign, runs]);
  const { x, y, fixed, others } = choiceOf(axes, choice);
  const inMap = selected(runs, fixed);
  const cell = x && choice("cell") !== undefined ? { ...fixed, [x.name]: choice("cell") ?? "", ...(y && { [y.name]: choice("row") ?? "" }) } : fixed;
  return (
    <Stack>
      <section aria-labelledby="map">
        <Title order={2} size="h3" id="map" mb="xs">
          Heat map
        </Title>
        <Group align="end">
          <Select
            label="Measure"
            data={measures.map(({ id, label }) => ({ value: id, label }))}
            value={measure.id}
            allowDeselect={false}
            onChange={(id) => {
              choose({ measure: id === measures[0]?.id || id === null ? undefined : id });
            }}
          />
          {axes.length > 1 && <AxisSelect label="Across" axes={axes.map(({ name }) => name)} value={x?.name} onChoose={(name) => { choose({ x: name, ...(name === y?.name && { y: x?.name }), cell: undefined, row: undefined }); }} />}
          {axes.length > 1 && <AxisSelect label="Down" axes={axes.map(({ name }) => name)} value={y?.name} onChoose={(name) => { choose({ y: name, ...(name === x?.name && { x: y?.name }), cell: undefined, row: undefined }); }} />}
          {others.map(({ name, levels }) => (
            <Select
              key={name}
              label={name}
              data={[{ value: "", label: "all together" }, ...levels.map((level) => ({ value: level, label: level }))]}
              value={fixed[name] ?? ""}
              allowDeselect={false}
              onChange={(level) => {
                choose({ [`axis.${name}`]: level === "" || level === null ? undefined : level });
              }}
            />
          ))}
        </Group>
        {read < wanted && (
          <Group gap="xs" mt="xs">
            <Loader size="xs" aria-label="Results are being read" />
            <Text size="sm">{`Results of ${read} of ${many(wanted, "run")} are read.`}</Text>
          </Group>
        )}
        <Trouble error={error} title="The results of some runs could not be read" />
        {x ? <HeatMap namespace={namespace} runs={inMap} x={x} y={y} measure={measure} averaged={others.filter(({ name }) => fixed[name] === undefined).map(({ name }) => name)} /> : <Text size="sm">This campaign varies nothing but the seed.</Text>}
      </section>
      <RunTable namespace={namespace} runs={selected(runs, cell)} axes={axes} measure={measure} cell={cell === fixed ? undefined : cell} />
    </Stack>
  );
}

function AxisSelect({ label, axes, value, onChoose }: { label: string; axes: string[]; value: string | undefined; onChoose: (axis: string) => void }) {
  return (
    <Select
      label={label}
      data={axes}
      value={value ?? null}
      allowDeselect={false}
      onChange={(axis) => {
        if (axis !== null) onChoose(axis);
      }}
    />
  );
}
