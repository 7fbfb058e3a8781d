import { Text, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Comparison, RunName } from "../../archive/comparison";
import { runQuery } from "../../archive/runs";
import { Trouble } from "../../components/Trouble";
import { VirtualTable, type Column } from "../../components/VirtualTable";
import { labelsOf } from "./labels";
import { byValue, differing, surroundingsOf, withLiveChanges, type ByValue, type Field } from "./surroundings";

// Of more runs each has a column no longer, and their surroundings are not read.
const columnsFor = 8;
const surroundingsFor = 24;

/** Differs shows only those fields of spec and surroundings in which the runs do not agree. */
export function Differs({ comparison, runs }: { comparison: Comparison; runs: readonly RunName[] }) {
  const labels = useMemo(() => labelsOf(comparison), [comparison]);
  const read = runs.length <= surroundingsFor ? comparison.runs : [];
  const states = useQueries({ queries: read.map(({ namespace, uid }) => runQuery(namespace, uid)) });
  const refused = states.find(({ data, error }) => !data && error)?.error;
  const plans = states.flatMap(({ data }) => (data ? [data.plan] : []));
  const around = plans.length === read.length ? differing(plans.map(surroundingsOf)) : undefined;
  return (
    <>
      <section>
        <Title order={2} size="h3">
          What differs in the specification
        </Title>
        <FieldTable label="What differs in the specification" fields={withLiveChanges(comparison.fields ?? [], plans)} labels={labels} none="Nothing but the seed: these runs are repeats." />
      </section>
      <section>
        <Title order={2} size="h3">
          What differs in the surroundings
        </Title>
        {read.length === 0 ? (
          <Text size="sm">{`Surroundings of up to ${surroundingsFor} runs are compared here; these are ${runs.length}.`}</Text>
        ) : around ? (
          <FieldTable label="What differs in the surroundings" fields={around} labels={labels} none="Nothing: versions, hosts and images are the same." />
        ) : refused ? (
          <Trouble error={refused} title="The surroundings of one of these runs could not be read" />
        ) : (
          <Text size="sm">The records of the runs are being read.</Text>
        )}
      </section>
    </>
  );
}

function FieldTable({ label, fields, labels, none }: { label: string; fields: readonly Field[]; labels: readonly string[]; none: string }) {
  if (fields.length === 0) return <Text size="sm">{none}</Text>;
  if (labels.length > columnsFor) return <VirtualTable label={label} columns={valueColumns} rows={byValue(fields, labels)} keyOf={({ field, value }) => `${field} ${value}`} height={320} />;
  const columns: Column<Field>[] = [{ id: "field", head: "Field", value: ({ field }) => field }, ...labels.map((head, i): Column<Field> => ({ id: String(i), head, value: ({ values }) => values[i] }))];
  return <VirtualTable label={label} columns={columns} rows={fields} keyOf={({ field }) => field} height={320} />;
}

const valueColumns: Column<ByValue>[] = [
  { id: "field", head: "Field", value: ({ field }) => field },
  { id: "value", head: "Value", value: ({ value }) => value },
  { id: "count", head: "Runs", numeric: true, value: ({ runs }) => runs.length },
  { id: "runs", head: "Which", value: ({ runs }) => runs.join("; ") },
];
