import { Button, Group, Stack, Table, Text, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { filePath } from "../../archive/runs";
import { bytes } from "../../components/figures";
import { ScrollTable } from "../../components/ScrollTable";
import { Trouble } from "../../components/Trouble";
import { remove } from "../../kubernetes/client";
import { useAccess, useObjects } from "../../kubernetes/hooks";
import { captures as kind } from "../../kubernetes/kinds";
import type { Capture, Experiment } from "../../types";
import { capturesOf, type CaptureFile, type CaptureRow } from "./captures";
import { NewCapture } from "./NewCapture";
import { PacketList } from "./PacketList";
import { useManifest } from "./run";
import { isUp } from "./state";
import type { TabProps } from "./tab";

/** CapturesTab lists the captures of a run, makes new ones, and shows their first packets. */
export default function CapturesTab({ experiment: e, state }: TabProps) {
  const namespace = e.metadata.namespace ?? "";
  const { objects, error } = useObjects(kind, { namespace });
  const manifest = useManifest(e);
  const mayCreate = useAccess({ verb: "create", group: kind.group, resource: kind.plural, namespace });
  const [shown, setShown] = useState<string>();
  const rows = useMemo(() => {
    const own = (objects ?? []).filter((capture) => capture.spec.experiment === e.metadata.name);
    return capturesOf(state?.plan.captures ?? [], own, manifest.data?.files ?? [], !isUp(e));
  }, [objects, state?.plan.captures, manifest.data, e]);
  const isKnown = objects !== undefined && !error && !manifest.error && !manifest.isLoading;
  const file = rows.flatMap(({ files }) => files).find(({ path }) => path === shown);
  return (
    <Stack>
      <Trouble error={error ?? manifest.error} title="Captures could not be read" />
      {mayCreate && isUp(e) && <NewCapture experiment={e} />}
      {rows.length === 0 && isKnown && <Text>There is no capture. One of the whole run belongs into the experiment&apos;s collect.captures.</Text>}
      {rows.map((row) => (
        <Row key={`${row.name}/${row.network}`} experiment={e} row={row} shown={shown} onShow={setShown} />
      ))}
      {file && <PacketList key={file.path} experiment={e} file={file} />}
    </Stack>
  );
}

interface RowProps {
  experiment: Experiment;
  row: CaptureRow;
  shown: string | undefined;
  onShow: (path: string | undefined) => void;
}

function Row({ experiment: e, row, shown, onShow }: RowProps) {
  return (
    <Stack gap={4}>
      <Group gap="sm">
        <Title order={2} size="h5">
          {row.name === "run" ? "Whole run" : row.name}, network {row.network}
        </Title>
        <Text size="sm">{row.state}</Text>
        {row.filter && <Text size="sm">filter: {row.filter}</Text>}
        {row.object && row.state !== "ended" && <End capture={row.object} />}
      </Group>
      {row.files.length === 0 ? (
        <Text size="sm">No frames have arrived in the archive yet{row.nodes && ` (nodes: ${row.nodes})`}.</Text>
      ) : (
        <ScrollTable label={`Files of ${row.name}, network ${row.network}`} minWidth={360} maxHeight={320}>
          <Table verticalSpacing={4}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Node</Table.Th>
                <Table.Th>Size</Table.Th>
                <Table.Th>File</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {row.files.map((file) => (
                <Table.Tr key={file.path}>
                  <Table.Td>{file.node}</Table.Td>
                  <Table.Td>{bytes(file.bytes)}</Table.Td>
                  <Table.Td>
                    <FileButtons experiment={e} row={row} file={file} isShown={shown === file.path} onShow={onShow} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </ScrollTable>
      )}
    </Stack>
  );
}

function FileButtons({ experiment: e, row, file, isShown, onShow }: Pick<RowProps, "experiment" | "row" | "onShow"> & { file: CaptureFile; isShown: boolean }) {
  const address = filePath(e.metadata.namespace ?? "", e.metadata.uid ?? "", file.path);
  const name = `${row.network} of ${file.node}`;
  return (
    <Group gap="xs" wrap="nowrap">
      <Button
        size="compact-sm"
        variant="default"
        aria-pressed={isShown}
        aria-label={`First packets on ${name}`}
        onClick={() => {
          onShow(isShown ? undefined : file.path);
        }}
      >
        First packets
      </Button>
      <Button size="compact-sm" variant="default" component="a" href={address} download={`${e.metadata.name}-${row.name}-${row.network}-${file.node}.pcapng`} aria-label={`Download ${name}`}>
        Download
      </Button>
    </Group>
  );
}

function End({ capture }: { capture: Capture }) {
  const { namespace, name, uid } = capture.metadata;
  const may = useAccess({ verb: "delete", group: kind.group, resource: kind.plural, namespace: namespace ?? "" });
  const end = useMutation({ mutationFn: () => remove(kind, namespace, name, uid ?? "") });
  if (!may) return null;
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        loading={end.isPending}
        onClick={() => {
          end.mutate();
        }}
      >
        End this capture
      </Button>
      <Trouble error={end.error} title="It could not be ended" />
    </>
  );
}
