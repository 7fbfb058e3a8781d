import { Alert, Anchor, Group, Loader, Select, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { comparisonPath, comparisonQuery, mostCompared, runNamesOf, type Asked, type Comparison, type ReferenceFile, type RunName } from "../../archive/comparison";
import { useChoices } from "../../components/address";
import { Trouble } from "../../components/Trouble";
import { BesideReference } from "./BesideReference";
import { Differs } from "./Differs";
import { Distributions } from "./Distributions";
import { OfRuns } from "./OfRuns";
import { ReferencePicker } from "./ReferencePicker";
import { RunPicker } from "./RunPicker";
import { Remarks } from "./Remarks";

/** Compare puts two or more runs side by side: first what differs, then what was measured. */
export function Compare() {
  const [choice, choose, choices] = useChoices();
  const runs = runNamesOf(choices("run"));
  const by = choice("by");
  const [chosen, setChosen] = useState<{ file: ReferenceFile; runs: RunName[] }>();
  // Figures of a run that is chosen no longer would be refused.
  const reference = chosen?.runs.every((run) => runs.some(({ uid }) => uid === run.uid)) ? chosen.file : undefined;
  const asked = { runs, by, reference };
  const { data, error, isFetching } = useQuery(comparisonQuery(asked));
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
      <ReferencePicker
        file={reference}
        onChange={(file) => {
          setChosen(file && { file, runs });
        }}
      />
      {runs.length < 2 && <Text>Choose at least two runs.</Text>}
      {runs.length > mostCompared && <Alert color="orange" title="Too many runs">{`A comparison has at most ${mostCompared} runs; these are ${runs.length}.`}</Alert>}
      {runs.length >= 2 && <Trouble error={error} title="These runs could not be compared" />}
      {isFetching && !data && <Loader aria-label="The runs are being compared" />}
      {data && runs.length >= 2 && <Compared comparison={data} asked={asked} />}
    </Stack>
  );
}

function Compared({ comparison, asked }: { comparison: Comparison; asked: Asked }) {
  const [, choose] = useChoices();
  const { by } = asked;
  return (
    <>
      <Differs comparison={comparison} runs={asked.runs} />
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
            <Anchor key={format} size="sm" href={comparisonPath(asked, format)} download={`comparison.${format === "latex" ? "tex" : format}`}>
              {format.toUpperCase()}
            </Anchor>
          ))}
        </Group>
      </Group>
      {comparison.reference && <BesideReference reference={comparison.reference} />}
      <Distributions comparison={comparison} />
      <OfRuns comparison={comparison} />
      <Remarks comparison={comparison} />
    </>
  );
}
