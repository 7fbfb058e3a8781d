import { Anchor, Code, CopyButton, Group, List, Stack, Table, Text, Title } from "@mantine/core";
import { Moment } from "../../../components/Moment";
import { span } from "../../../components/time";
import { Trouble } from "../../../components/Trouble";
import { usePreview, type Preview as Takes } from "../hooks";
import { commandsFor } from "../run/names";
import type { Source } from "../start/source";
import { read } from "../text/read";
import { Difference } from "./Difference";

/** Preview says what an experiment takes, when it would start, and what is different from its source. */
export function Preview({ text, source, namespace, valid }: { text: string; source: Source; namespace: string; valid: boolean }) {
  const { preview, error, loading } = usePreview(text, namespace, valid);
  const main = read(text).main;
  return (
    <Stack>
      {!valid && <Text>The preview follows when the text has no errors.</Text>}
      <Trouble error={error} title="There is no preview" />
      {valid && preview && <Amounts preview={preview} />}
      {valid && loading && !preview && <Text c="dimmed">Asking the cluster</Text>}
      <Title order={3} size="h5">
        Commands that do the same
      </Title>
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
      <Difference source={source} text={text} valid={valid} />
    </Stack>
  );
}

function Amounts({ preview }: { preview: Takes }) {
  const rows: [string, React.ReactNode][] = [];
  if (preview.runs !== undefined) rows.push(["Runs", `${preview.runs} of ${preview.points ?? 1} points`]);
  if (preview.campaignSeconds) rows.push(["All runs", `about ${span(preview.campaignSeconds)} with ${preview.parallelism ?? 1} at a time, without starts and analyses`]);
  if (preview.pods !== undefined) rows.push(["Pods", preview.pods]);
  if (preview.cpuCores !== undefined) rows.push(["Cores", preview.cpuCores.toFixed(2)]);
  if (preview.memoryBytes !== undefined) rows.push(["Memory", gibibytes(preview.memoryBytes)]);
  if (preview.durationSeconds) rows.push(["From admission until its room is free again", span(preview.durationSeconds)]);
  if (preview.start) rows.push(["Start", <StartWords key="start" start={preview.start} />]);
  if (preview.quotas?.length === 0 && !preview.unknown?.some((words) => words.includes("quotas"))) rows.push(["Quota", "none in this namespace"]);
  for (const quota of preview.quotas ?? []) rows.push([`Quota ${quota.name}, ${quota.resource}`, `${quota.needed} of ${quota.free} free${quota.enough ? "" : ": not enough"}`]);
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
      {preview.unknown && preview.unknown.length > 0 && (
        <List size="sm">
          {preview.unknown.map((words) => (
            <List.Item key={words}>Not known: {words}</List.Item>
          ))}
        </List>
      )}
    </>
  );
}

function StartWords({ start }: { start: NonNullable<Takes["start"]> }) {
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

function gibibytes(bytes: number): string {
  return bytes < 2 ** 30 ? `${Math.ceil(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(2)} GiB`;
}
