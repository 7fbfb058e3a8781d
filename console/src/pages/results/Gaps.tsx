import { List, Stack, Text, Title } from "@mantine/core";
import type { Gap } from "../../archive/types";
import { many } from "../../components/figures";
import { afterT0 } from "../../components/time";
import type { PartProps } from "./part";
import { when } from "./words";

/** Gaps says what is missing, what the figures must be read with, and what people changed. */
export function Gaps({ results, state }: PartProps) {
  const changes = state.plan.liveChanges ?? [];
  return (
    <Stack>
      <GapList title="Warnings" about="A headline must name them." gaps={results.warnings ?? []} none="There are no warnings." />
      <GapList title="Gaps" about="What is missing from the results, and why." gaps={results.gaps ?? []} none="Nothing is missing." />
      <GapList title="Incidents" about="What failed while the run went on." gaps={state.incidents ?? []} none="Nothing failed." />
      <section>
        <Title order={2} size="h3">
          Changes by hand
        </Title>
        {changes.length === 0 && <Text>Nobody changed anything while the run went on.</Text>}
        <List>
          {changes.map(({ name, atNanoseconds, changes: made }) => (
            <List.Item key={name}>
              {afterT0(atNanoseconds / 1e9)}: {name}, {many(made?.length ?? 0, "change")}
            </List.Item>
          ))}
        </List>
      </section>
      <GapList title="Notes" about="What was not asked for, or cannot be measured here. Nothing is missing for it." gaps={results.notes ?? []} none="There are no notes." />
    </Stack>
  );
}

function GapList({ title, about, gaps, none }: { title: string; about: string; gaps: readonly Gap[]; none: string }) {
  return (
    <section>
      <Title order={2} size="h3">
        {title}
      </Title>
      <Text size="sm" c="dimmed">
        {gaps.length === 0 ? none : about}
      </Text>
      <List>
        {gaps.map((gap, i) => (
          <List.Item key={i}>
            <Text span fw={600}>
              {gap.what}
            </Text>
            {gap.node && ` at ${gap.node === "*" ? "several nodes" : gap.node}`}
            {when(gap) && `, ${when(gap)}`}: {gap.reason}
          </List.Item>
        ))}
      </List>
    </section>
  );
}
