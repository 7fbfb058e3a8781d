import { Alert, Anchor, Group, Loader, Select, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { comparisonPath, comparisonQuery, mostCompared, runNamesOf, type Comparison, type RunName } from "../../archive/comparison";
import { useChoices } from "../../components/address";
import { Trouble } from "../../components/Trouble";
import { Differs } from "./Differs";
import { Distributions } from "./Distributions";
import { RunPicker } from "./RunPicker";
import { Remarks } from "./Remarks";

/** Compare puts two or more runs side by side: first what differs, then what was measured. */
export function Compare() {
  const [choice, choose, choices] = useChoices();
  const runs = runNamesOf(choices("run"));
  const by = choice("by");
  const { data, error, isFetching } = useQuery(comparisonQuery(runs, by));
  return (
    <Stack>
      <Title order={1} size="h2">
        Compare runs
      </Title>
      <RunPicker
        runs={runs}
        compared={data?.runs ?? []}
        onChange={(chosen) => {
          choose({ run: chosen.map(({ namespace, uid }) => `${namespace}/${uid}`), by: undefined });
        }}
      />
      {runs.length < 2 && <Text>Choose at least two runs.</Text>}
      {runs.length > mostCompared && <Alert color="orange" title="Too many runs">{`A comparison has at most ${mostCompared} runs; these are ${runs.length}.`}</Alert>}
      {runs.length >= 2 && <Trouble error={error} title="These runs could not be compared" />}
      {isFetching && !data && <Loader aria-label="The runs are being compared" />}
      {data && runs.length >= 2 && <Compared comparison={data} runs={runs} by={by} />}
    </Stack>
  );
}

function Compared({ comparison, runs, by }: { comparison: Comparison; runs: RunName[]; by: string | undefined }) {
  const [, choose] = useChoices();
  return (
    <>
      <Differs comparison={comparison} runs={runs} />
      <Group align="end">
        <Select
          label="Runs are one condition if they agree in"
          w={320}
          data={[
            { value: "", label: "everything but the seed" },
            { value: "run", label: "nothing: each run by itself" },
            ...(comparison.fields ?? []).map(({ field }) => ({ value: field, label: field })),
            ...(by && by !== "run" && !comparison.fields?.some(({ field }) => field === by) ? [{ value: by, label: by }] : []),
          ]}
          value={by ?? ""}
          allowDeselect={false}
          onChange={(value) => {
            choose({ by: value === "" || value === null ? undefined : value });
          }}
        />
        <Group gap="sm" pb={6}>
          <Text size="sm">Download as</Text>
          {(["csv", "html", "latex", "json"] as const).map((format) => (
            <Anchor key={format} size="sm" href={comparisonPath(runs, by, format)} download={`comparison.${format === "latex" ? "tex" : format}`}>
              {format.toUpperCase()}
            </Anchor>
          ))}
        </Group>
      </Group>
      <Distributions comparison={comparison} />
      <Remarks comparison={comparison} />
    </>
  );
}
