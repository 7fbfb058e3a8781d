import { Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState, useSyncExternalStore } from "react";
import { filePath } from "../../archive/runs";
import { useChoices } from "../../components/address";
import { bytes } from "../../components/figures";
import { Trouble } from "../../components/Trouble";
import type { Experiment } from "../../types";
import { Follower } from "./follow";
import { LineList } from "./LineList";
import { matching } from "./lines";
import { logsOf, type LogFile } from "./logs";
import { useManifest } from "./run";
import { isOver, isWaiting, neverRan } from "./state";
import type { TabProps } from "./tab";

/** LogsTab shows a log of an app on a node, as it grows. */
export default function LogsTab({ experiment: e }: TabProps) {
  const manifest = useManifest(e);
  const search: { node?: unknown; log?: unknown } = useSearch({ strict: false });
  const navigate = useNavigate();
  const logs = useMemo(() => logsOf(manifest.data?.files ?? []), [manifest.data]);
  if (isWaiting(e)) return <Text>Logs begin when the nodes are up.</Text>;
  if (neverRan(e)) return <Text>The experiment never ran: there are no logs.</Text>;
  const nodes = [...new Set(logs.map((log) => log.node))];
  const node = typeof search.node === "string" && nodes.includes(search.node) ? search.node : nodes[0];
  const ofNode = logs.filter((log) => log.node === node);
  const chosen = ofNode.find((log) => log.path === search.log) ?? ofNode.find((log) => log.bytes > 0) ?? ofNode[0];
  const choose = (change: { node?: string; log?: string }) => {
    void navigate({ to: ".", search: (before: object) => ({ ...before, log: undefined, ...change }), replace: true, resetScroll: false });
  };
  return (
    <Stack gap="sm">
      <Trouble error={manifest.error} title="The list of logs could not be read" />
      <Group>
        <Select
          label="Node"
          data={nodes}
          value={node ?? null}
          searchable
          allowDeselect={false}
          onChange={(value) => {
            if (value) choose({ node: value });
          }}
        />
        <Select
          label="Log"
          data={ofNode.map((log) => ({ value: log.path, label: `${log.app}: ${log.file} (${log.bytes === 0 ? "empty" : bytes(log.bytes)})` }))}
          w={{ base: "100%", xs: 320 }}
          value={chosen?.path ?? null}
          allowDeselect={false}
          onChange={(value) => {
            if (value) choose({ ...(node !== undefined && { node }), log: value });
          }}
        />
      </Group>
      {chosen ? <LogView key={chosen.path} experiment={e} log={chosen} /> : manifest.data && <Text>There are no logs yet.</Text>}
    </Stack>
  );
}

// The end of a long log is read first.
const tailBytes = 1 << 20;

function LogView({ experiment: e, log }: { experiment: Experiment; log: LogFile }) {
  const namespace = e.metadata.namespace ?? "";
  const uid = e.metadata.uid ?? "";
  const follows = !isOver(e);
  // The size grows with each listing; reading begins where it was when the log was opened.
  const [tail] = useState(Math.max(0, log.bytes - tailBytes));
  const [keepsFirst, setKeepsFirst] = useState(false);
  const offset = keepsFirst ? 0 : tail;
  const [choice, choose] = useChoices();
  const words = choice("findLines") ?? "";
  const follower = useMemo(() => new Follower({ namespace, uid, path: log.path, offset, follows, keepsFirst }), [namespace, uid, log.path, offset, follows, keepsFirst]);
  const { lines, forgotten, ended, full, error } = useSyncExternalStore(follower.subscribe, follower.snapshot);
  const found = useMemo(() => matching(lines, words, (line) => line.text).map((line) => ({ key: line.number, milliseconds: line.milliseconds, text: line.text })), [lines, words]);
  const note = [ended ? "complete" : "", full ? "from the start; the download has all" : "", forgotten > 0 ? `${forgotten} older ones not kept` : ""].filter(Boolean).join(", ");
  return (
    <Stack gap="xs">
      <Group align="end">
        <TextInput
          label="Search"
          placeholder="Words that a line has"
          value={words}
          onChange={(event) => {
            choose({ findLines: event.currentTarget.value || undefined });
          }}
          w={{ base: "100%", xs: 320 }}
        />
        {(offset > 0 || forgotten > 0) && (
          <Button
            variant="default"
            onClick={() => {
              setKeepsFirst(true);
            }}
          >
            Read from the start ({bytes(log.bytes)})
          </Button>
        )}
        <Button component="a" variant="default" href={filePath(namespace, uid, log.path)} download={`${e.metadata.name}-${log.node}-${log.app}-${log.file}`}>
          Download
        </Button>
      </Group>
      <Trouble error={error} title="The log could not be read on" />
      <LineList key={keepsFirst ? "first" : "newest"} label={`Log ${log.path}`} lines={found} t0={e.status?.t0} note={note} begins={keepsFirst} />
    </Stack>
  );
}
