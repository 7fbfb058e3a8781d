import { Group, List, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useMemo, useSyncExternalStore } from "react";
import { useChoices } from "../../components/address";
import { Trouble } from "../../components/Trouble";
import { useObjects } from "../../kubernetes/hooks";
import { events as kind } from "../../kubernetes/kinds";
import { archivedEvents, clusterEvents, textOf, type RunEvent } from "./events";
import { Follower } from "./follow";
import { LineList, type ListedLine } from "./LineList";
import { matching } from "./lines";
import { isOver } from "./state";
import type { TabProps } from "./tab";

/** EventsTab has the events of a run: those of the archive, or of the cluster while there is no archive of it yet. */
export default function EventsTab({ experiment, state }: TabProps) {
  return state ? <Archived experiment={experiment} state={state} /> : <OfCluster experiment={experiment} state={state} />;
}

function Archived({ experiment: e }: TabProps) {
  const namespace = e.metadata.namespace ?? "";
  const uid = e.metadata.uid ?? "";
  const follows = !isOver(e);
  const follower = useMemo(() => new Follower({ namespace, uid, path: "events.jsonl", offset: 0, follows }), [namespace, uid, follows]);
  const { lines, error } = useSyncExternalStore(follower.subscribe, follower.snapshot);
  const events = useMemo(() => archivedEvents(lines), [lines]);
  return <Events events={events} t0={e.status?.t0} error={error} />;
}

function OfCluster({ experiment: e }: TabProps) {
  const { objects, error } = useObjects(kind, { namespace: e.metadata.namespace ?? "", fieldSelector: `involvedObject.uid=${e.metadata.uid ?? ""}` });
  const events = useMemo(() => clusterEvents(objects ?? []), [objects]);
  return <Events events={events} t0={e.status?.t0} error={error} />;
}

function Events({ events, t0, error }: { events: RunEvent[]; t0: string | undefined; error: unknown }) {
  const [choice, choose] = useChoices();
  const words = choice("findEvents") ?? "";
  const kinds = choice("events") === "warnings" ? "warnings" : "all";
  const lines = useMemo(() => {
    const chosen = kinds === "all" ? events : events.filter((event) => event.isWarning);
    return matching(chosen, words, (event) => `${textOf(event)} ${event.object}`).map(listed);
  }, [events, words, kinds]);
  return (
    <Stack gap="sm">
      <Group>
        <TextInput
          placeholder="Filter: node, reason, message"
          aria-label="Filter events"
          value={words}
          onChange={(event) => {
            choose({ findEvents: event.currentTarget.value || undefined });
          }}
          w={{ base: "100%", xs: 320 }}
        />
        <SegmentedControl
          aria-label="Kind of events"
          value={kinds}
          onChange={(chosen) => { choose({ events: chosen === "warnings" ? chosen : undefined }); }}
          data={[
            { value: "all", label: "All" },
            { value: "warnings", label: "▲ Warnings" },
          ]}
        />
      </Group>
      <Trouble error={error} title="Events could not be read" />
      <LineList label="Events" lines={lines} t0={t0} />
    </Stack>
  );
}

function listed(event: RunEvent): ListedLine {
  return {
    key: event.uid,
    milliseconds: event.milliseconds,
    text: textOf(event),
    mark: event.isWarning ? "▲ " : "",
    details: (
      <List size="sm">
        <List.Item>{event.isWarning ? "Warning" : "Normal"}</List.Item>
        <List.Item>{event.object}</List.Item>
        <List.Item>
          {event.reason}
          {event.count > 1 ? `, ${event.count} times` : ""}
        </List.Item>
        <List.Item>
          <Text inherit>{event.message}</Text>
        </List.Item>
      </List>
    ),
  };
}
