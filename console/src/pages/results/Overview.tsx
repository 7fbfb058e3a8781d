import { Alert, List, Paper, Select, SimpleGrid, Stack, Text, TextInput, Title } from "@mantine/core";
import { useMemo } from "react";
import type { ClockResult, Results } from "../../archive/types";
import { useChoices } from "../../components/address";
import { duration } from "../../components/figures";
import { punctuality } from "../../components/punctuality";
import { sortFrom, writeSort } from "../../components/sorting";
import { TableSection } from "../../components/TableSection";
import { VirtualTable, type Column } from "../../components/VirtualTable";
import { palette } from "../../theme/palette";
import type { PartProps } from "./part";
import { figureColumns, figureRows, found, tables, type TableName } from "./rows";
import { headlinesOf, lateWords, verdictWords, when } from "./words";

/** Overview is the headline, the verdict and the table of figures. */
export function Overview({ results }: PartProps) {
  return (
    <Stack>
      <Warnings results={results} />
      <Headlines results={results} />
      <VerdictOf results={results} />
      <FigureTable results={results} />
      <Clocks results={results} />
    </Stack>
  );
}

function Warnings({ results: { warnings } }: { results: Results }) {
  if (!warnings || warnings.length === 0) return null;
  return (
    <Alert color="orange" title="The figures are to be read with these warnings">
      <List size="sm">
        {warnings.slice(0, 10).map((warning) => (
          <List.Item key={`${warning.what} ${warning.node ?? ""}`}>
            {warning.what}
            {when(warning) && `, ${when(warning)}`}: {warning.reason}
          </List.Item>
        ))}
      </List>
      {warnings.length > 10 && <Text size="sm">{warnings.length - 10} more are among the gaps.</Text>}
    </Alert>
  );
}

function Headlines({ results }: { results: Results }) {
  return (
    <section aria-labelledby="headline">
      <Title order={2} size="h3" id="headline" mb="xs">
        Headline
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        {results.headline === "radio" ? "Deliveries between different nodes (group radio)." : "All deliveries."} Square brackets have the 95 % interval of confidence.
      </Text>
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }}>
        {headlinesOf(results).map(({ label, value, note }) => (
          <Paper key={label} withBorder p="sm">
            <Text size="sm">{label}</Text>
            <Text fz="xl" fw={700}>
              {value}
            </Text>
            <Text size="xs" c="dimmed">
              {note}
            </Text>
          </Paper>
        ))}
      </SimpleGrid>
    </section>
  );
}

const colours = { good: palette.green, bad: palette.red, unknown: palette.grey };
const signs = { good: "✓", bad: "!", unknown: "?" };

function VerdictOf({ results }: { results: Results }) {
  const { state, title, sentences } = verdictWords(results);
  const late = results.verdict?.late ?? [];
  return (
    <Alert color={colours[state]} variant="outline" title={`${signs[state]} ${title}`} styles={{ title: { color: "var(--mantine-color-text)" } }}>
      <List size="sm">
        {[...sentences, ...punctuality(results.verdict), ...(results.verdict?.context ?? [])].map((sentence) => (
          <List.Item key={sentence}>{sentence}</List.Item>
        ))}
      </List>
      {late.length > 0 && (
        <details>
          <summary>The {late.length === 1 ? "worst moment" : `${late.length} worst moments`}</summary>
          <List size="sm">
            {late.map((moment) => (
              <List.Item key={`${moment.fromSeconds} ${moment.node} ${moment.what}`}>
                {when(moment)}: {lateWords(moment)}
              </List.Item>
            ))}
          </List>
        </details>
      )}
    </Alert>
  );
}

const names: Record<TableName, string> = { groups: "Groups", pairs: "Pairs of node groups", publishers: "Publishers" };

function FigureTable({ results }: { results: Results }) {
  const [choice, choose] = useChoices();
  const table = tables.find((name) => name === choice("of")) ?? "groups";
  const search = choice("find") ?? "";
  const rows = useMemo(() => figureRows(results, table), [results, table]);
  const columns = useMemo(() => figureColumns(table, rows), [table, rows]);
  return (
    <section aria-label="Figures">
      <SimpleGrid cols={{ base: 1, sm: 2 }} mb="xs">
        <Select
          label="Figures of"
          data={tables.map((value) => ({ value, label: `${names[value]} (${figureRows(results, value).length})` }))}
          value={table}
          allowDeselect={false}
          onChange={(of) => {
            choose({ of: of === "groups" || of === null ? undefined : of, sort: undefined });
          }}
        />
        <TextInput
          label="Find by name or node"
          value={search}
          onChange={(event) => {
            choose({ find: event.currentTarget.value || undefined });
          }}
        />
      </SimpleGrid>
      <VirtualTable
        label={names[table]}
        columns={columns}
        rows={found(rows, search)}
        keyOf={({ key }) => key}
        sort={sortFrom(choice("sort"))}
        onSort={(sort) => {
          choose({ sort: writeSort(sort) });
        }}
        empty={search === "" ? "The results have none of them." : `None has ${search} in its name.`}
      />
    </section>
  );
}

/** Clocks are those of nodes that have their own, such as virtual machines. */
function Clocks({ results: { clocks } }: { results: Results }) {
  if (!clocks || clocks.length === 0) return null;
  return (
    <TableSection title="Clocks of nodes" note="Delays to and from other nodes may be wrong by the sum of both figures." columns={clockColumns} rows={clocks} keyOf={({ node }) => node} />
  );
}

const clockColumns: Column<ClockResult>[] = [
  { id: "node", head: "Node", value: ({ node }) => node },
  { id: "offset", head: "Offset at most", numeric: true, value: ({ worstOffsetSeconds }) => worstOffsetSeconds, show: ({ worstOffsetSeconds }) => duration(worstOffsetSeconds) },
  { id: "uncertainty", head: "Known within", numeric: true, value: ({ worstUncertaintySeconds }) => worstUncertaintySeconds, show: ({ worstUncertaintySeconds }) => duration(worstUncertaintySeconds) },
];
