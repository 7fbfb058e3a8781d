import { useMemo } from "react";
import type { Comparison } from "../../archive/comparison";
import { useChoices } from "../../components/address";
import { TableSection } from "../../components/TableSection";
import { shownOf } from "./labels";
import { pictureColumns, pictureRows, publisherColumns, publisherRows, sizeColumns, sizeRows, volumeColumns, volumeRows } from "./ofRuns";

/** OfRuns shows volumes of networks, and what runs have that conditions have not: publishers, sizes of messages, and the picture. */
export function OfRuns({ comparison }: { comparison: Comparison }) {
  return (
    <>
      <Publishers comparison={comparison} />
      <Volumes comparison={comparison} />
      <Sizes comparison={comparison} />
      <Picture comparison={comparison} />
    </>
  );
}

function Publishers({ comparison }: { comparison: Comparison }) {
  const rows = useMemo(() => publisherRows(comparison), [comparison]);
  if (rows.length === 0) return null;
  return <TableSection title="Publishers" note="The deliveries of each publisher in each run." columns={publisherColumns} rows={rows} keyOf={({ name, run }) => `${name} ${run}`} />;
}

function Volumes({ comparison }: { comparison: Comparison }) {
  const [choice] = useChoices();
  const of = shownOf(comparison, choice("of"));
  const rows = useMemo(() => volumeRows(comparison, of), [comparison, of]);
  const columns = useMemo(() => volumeColumns(comparison), [comparison]);
  if (rows.length === 0) return null;
  return (
    <TableSection
      title="Data volume by network"
      note="Ethernet bytes that nodes sent, each once, from the first start of a publisher to the end of the drain. Of repeats: the mean of the runs, with its 95 % interval."
      columns={columns}
      rows={rows}
      keyOf={({ name }) => name}
    />
  );
}

function Sizes({ comparison }: { comparison: Comparison }) {
  const rows = useMemo(() => sizeRows(comparison), [comparison]);
  const columns = useMemo(() => sizeColumns(comparison), [comparison]);
  if (rows.length === 0) return null;
  return (
    <TableSection
      title="Message on the wire"
      note="Medians by protocol: all frames that carried a message, with their headers, at the node that sent it."
      columns={columns}
      rows={rows}
      keyOf={({ run }) => run}
    />
  );
}

function Picture({ comparison }: { comparison: Comparison }) {
  const rows = useMemo(() => pictureRows(comparison), [comparison]);
  if (rows.length === 0) return null;
  return (
    <TableSection
      title="Picture of the nodes"
      note="How far off, and how old, the freshest positions were that subscribers had of other nodes."
      columns={pictureColumns}
      rows={rows}
      keyOf={({ group, run }) => `${group} ${run}`}
    />
  );
}
