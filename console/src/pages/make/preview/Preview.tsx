import { Anchor, Box, Code, CopyButton, Group, List, Stack, Table, Text, Title } from "@mantine/core";
import { binarySize, many } from "../../../components/figures";
import { Moment } from "../../../components/Moment";
import { span } from "../../../components/time";
import { Trouble } from "../../../components/Trouble";
import { useForecast, type Forecast } from "../hooks";
import { commandsFor } from "../run/names";
import type { Source } from "../start/source";
import { read } from "../text/read";
import { Difference } from "./Difference";

/** Preview says what an experiment takes, when it would start, and what is different from its source. */
export function Preview({ text, source, namespace, valid }: { text: string; source: Source; namespace: string; valid: boolean }) {
  const { forecast, error, fresh } = useForecast(text, namespace, valid);
  const main = read(text).main;
  return (
    <Stack>
      {!valid && <Text>The preview follows when the text has no errors.</Text>}
      <Trouble error={error} title="There is no preview" />
      {valid && !fresh && !error && <Text role="status">{forecast ? "The cluster is being asked. These figures are of the text before." : "The cluster is being asked."}</Text>}
      {valid && forecast && (
        <Box opacity={fresh ? 1 : 0.6}>
          <Amounts forecast={forecast} />
        </Box>
      )}
      <Title order={3} size="h5">
        Commands that do the same
      </Title>
      <Text size="sm">
        Use the file that <strong>Download YAML</strong> saves.{source.mark && main?.kind !== "Campaign" ? " Its labels and annotations say which run it repeats; the text beside does not have them." : ""}
      </Text>
      {commandsFor(main?.kind ?? "Experiment", main?.name ?? "", namespace).map(({ label, command }) => (
        <Group key={label} gap="xs">
          <Code>{command}</Code>
          <CopyButton value={command}>
            {({ copied, copy }) => (
              <Anchor component="button" type="button" size="sm" onClick={copy} aria-label={`Copy the command of ${label}`}>
                {copied ? "copied" : "copy"}
              </Anchor>
            )}
          </CopyButton>
        </Group>
      ))}
      <Title order={3} size="h5">
        Difference from the source
      </Title>
      <Difference source={source} after={valid && fresh ? forecast?.normal : undefined} />
    </Stack>
  );
}

function Amounts({ forecast }: { forecast: Forecast }) {
  const rows: [string, React.ReactNode][] = [];
  if (forecast.runs !== undefined) rows.push(["Runs", `${forecast.runs} of ${many(forecast.points ?? 1, "point")}`]);
  if (forecast.campaignSeconds) rows.push(["All runs", `about ${span(forecast.campaignSeconds)} with ${forecast.parallelism ?? 1} at once, without starts and analyses`]);
  rows.push(["Pods", forecast.pods]);
  rows.push(["Cores", forecast.cpuCores.toFixed(2)]);
  rows.push(["Memory", binarySize(forecast.memoryBytes)]);
  if (forecast.durationSeconds) rows.push(["From admission until its room is free again", span(forecast.durationSeconds)]);
  if (forecast.start) rows.push(["Start", <StartWords key="start" start={forecast.start} />]);
  if (forecast.quotas.length === 0 && !forecast.unknown.some((words) => words.includes("quotas"))) rows.push(["Quota", "none in this namespace"]);
  for (const quota of forecast.quotas) rows.push([`Quota ${quota.name}, ${quota.resource}`, `${quota.needed} of ${quota.free} free${quota.enough ? "" : ": not enough"}`]);
  return (
    <>
      <Table withTableBorder>
        <Table.Tbody>
          {rows.map(([label, value]) => (
            <Table.Tr key={label}>
              <Table.Th scope="row">{label}</Table.Th>
              <Table.Td>{value}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {forecast.unknown.length > 0 && (
        <List size="sm">
          {forecast.unknown.map((words) => (
            <List.Item key={words}>Not known: {words}</List.Item>
          ))}
        </List>
      )}
    </>
  );
}

function StartWords({ start }: { start: NonNullable<Forecast["start"]> }) {
  if (start.admitted) return <>at once: there is room</>;
  return (
    <>
      {start.expectedStart ? (
        <>
          at <Moment time={start.expectedStart} />
        </>
      ) : (
        "not known"
      )}
      {start.position ? `, place ${start.position} of the queue` : ""}: {start.message}
    </>
  );
}
