import { Anchor, Button, Checkbox, Group, Loader, Stack, Text, TextInput, Title } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { askAgainAfter } from "../../archive/polling";
import { archiveTarPath, fileKinds, filePath, filesQuery, kindOfFile, type FileKind } from "../../archive/runs";
import type { ManifestFile } from "../../archive/types";
import { useChoices } from "../../components/address";
import { bytes, many } from "../../components/figures";
import { sortFrom, writeSort } from "../../components/sorting";
import { Trouble } from "../../components/Trouble";
import { VirtualTable, type Column } from "../../components/VirtualTable";
import { chosenKinds, filesShown, sizeOf } from "./fileKinds";

const whileItRuns = 10_000;

/** Files lists the archived files of a run, again and again until it has ended. Each can be downloaded, and all of some kinds as one archive. */
export function Files({ namespace, uid, ended = true }: { namespace: string; uid: string; ended?: boolean }) {
  const { data, error } = useQuery({
    ...filesQuery(namespace, uid, ended),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (ended ? false : askAgainAfter(state.error, whileItRuns)),
  });
  const [choice, choose, choices] = useChoices();
  if (error && !data) return <Trouble error={error} title="The files could not be listed" />;
  if (!data) return <Loader aria-label="The files are being listed" />;
  const kinds = chosenKinds(choices("kind"));
  const shown = filesShown(data.files ?? [], kinds, choice("find") ?? "");
  const columns: Column<ManifestFile>[] = [
    {
      id: "path",
      head: "File",
      value: ({ path }) => path,
      show: ({ path }) => (
        <Anchor href={filePath(namespace, uid, path)} download={path.split("/").at(-1)} size="sm">
          {path}
        </Anchor>
      ),
    },
    { id: "kind", head: "Kind", value: ({ path }) => kindOfFile(path) },
    { id: "bytes", head: "Size", numeric: true, value: (file) => file.bytes, show: (file) => bytes(file.bytes) },
    { id: "sha256", head: "SHA-256", value: ({ sha256 }) => sha256 ?? "" },
  ];
  return (
    <Stack>
      <Title order={2} size="h3">
        Files
      </Title>
      <Trouble error={error} title="The list of files is not current" />
      <Checkbox.Group
        label="Kinds"
        value={kinds}
        onChange={(chosen) => {
          choose({ kind: chosen.length === fileKinds.length || chosen.length === 0 ? undefined : chosen });
        }}
      >
        <Group mt={4}>
          {fileKinds.map((kind) => (
            <Checkbox key={kind} value={kind} label={`${kind} (${bytes(sizeOf(filesShown(data.files ?? [], [kind], "")))})`} />
          ))}
        </Group>
      </Checkbox.Group>
      <Group align="end">
        <TextInput
          label="Find by path"
          value={choice("find") ?? ""}
          onChange={(event) => {
            choose({ find: event.currentTarget.value || undefined });
          }}
        />
        <TarButton namespace={namespace} uid={uid} kinds={kinds} size={sizeOf(filesShown(data.files ?? [], kinds, ""))} />
      </Group>
      <Text size="sm">
        {many(shown.length, "file")}, {bytes(sizeOf(shown))}
      </Text>
      <VirtualTable
        label="Files"
        columns={columns}
        rows={shown}
        keyOf={({ path }) => path}
        sort={sortFrom(choice("sort"))}
        onSort={(sort) => {
          choose({ sort: writeSort(sort) });
        }}
      />
    </Stack>
  );
}

function TarButton({ namespace, uid, kinds, size }: { namespace: string; uid: string; kinds: readonly FileKind[]; size: number }) {
  return (
    <Button component="a" href={archiveTarPath(namespace, uid, kinds)} download variant="default">
      {kinds.length === fileKinds.length ? "Download all" : `Download ${kinds.join(", ")}`} as archive.tar ({bytes(size)})
    </Button>
  );
}
