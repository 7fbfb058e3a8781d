import { Stack, Table, Text, Title } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { summarise } from "../../archive/packet";
import { readPcapng, type CapturedPacket } from "../../archive/pcapng";
import { filePath } from "../../archive/runs";
import { ScrollTable } from "../../components/ScrollTable";
import { Trouble } from "../../components/Trouble";
import { fromT0 } from "../../components/time";
import { ask, Refusal, unbroken } from "../../kubernetes/client";
import type { Experiment } from "../../types";
import type { CaptureFile } from "./captures";

const mostPackets = 200;
const mostBytes = 256 << 10;

/** PacketList shows the first packets of a capture. */
export function PacketList({ experiment: e, file }: { experiment: Experiment; file: CaptureFile }) {
  const path = filePath(e.metadata.namespace ?? "", e.metadata.uid ?? "", file.path);
  const { data, error, isPending } = useQuery({
    queryKey: ["packets", path, file.bytes > mostBytes ? "full" : file.bytes],
    queryFn: async ({ signal }) => readPcapng(await beginningOf(path, signal), mostPackets),
    placeholderData: keepPreviousData,
  });
  return (
    <Stack gap="xs">
      <Title order={2} size="h5">
        First packets of {file.node}
      </Title>
      <Trouble error={error} title="The capture could not be read" />
      {isPending && <Text size="sm">Reading …</Text>}
      {data?.problem && <Trouble error={new Refusal(0, `After ${data.packets.length} packets: ${data.problem}.`)} title="The file is damaged" />}
      {data && data.packets.length > 0 && <Packets packets={data.packets} t0={e.status?.t0} />}
      {data?.more && <Text size="sm">The first {data.packets.length} packets; the download has all.</Text>}
      {data?.packets.length === 0 && !data.problem && <Text size="sm">It has no packet yet.</Text>}
    </Stack>
  );
}

// The file may be large, and its beginning is enough.
async function beginningOf(path: string, signal: AbortSignal): Promise<Uint8Array> {
  const reader = (await ask(path, { signal })).body?.getReader();
  const pieces: Uint8Array[] = [];
  let length = 0;
  while (reader && length < mostBytes) {
    const { done, value } = await unbroken(reader.read());
    if (done) break;
    pieces.push(value);
    length += value.length;
  }
  await reader?.cancel();
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function Packets({ packets, t0 }: { packets: CapturedPacket[]; t0: string | undefined }) {
  return (
    <ScrollTable label="First packets" minWidth={720} maxHeight={480}>
      <Table verticalSpacing={2} stickyHeader ff="monospace" fz="sm">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Time</Table.Th>
            <Table.Th>Source</Table.Th>
            <Table.Th>Destination</Table.Th>
            <Table.Th>Protocol</Table.Th>
            <Table.Th>Length</Table.Th>
            <Table.Th>Info</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {packets.map((packet, i) => {
            const { source, destination, protocol, info } = summarise(packet.linkType, packet.data);
            return (
              <Table.Tr key={i}>
                <Table.Td>{timeOf(packet, t0)}</Table.Td>
                <Table.Td>{source}</Table.Td>
                <Table.Td>{destination}</Table.Td>
                <Table.Td>{protocol}</Table.Td>
                <Table.Td>{packet.length}</Table.Td>
                <Table.Td>{info}</Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </ScrollTable>
  );
}

function timeOf(packet: CapturedPacket, t0: string | undefined): string {
  const time = new Date(Number(packet.nanoseconds / 1_000_000n));
  if (Number.isNaN(time.getTime())) return "no valid time";
  const micro = String((packet.nanoseconds / 1000n) % 1_000_000n).padStart(6, "0");
  return `${time.toISOString().slice(11, 19)}.${micro}Z${t0 ? ` ${fromT0(time, new Date(t0))}` : ""}`;
}
