import { Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { VirtualTable, type VirtualTableProps } from "./VirtualTable";

interface TableSectionProps<Row> extends Omit<VirtualTableProps<Row>, "label"> {
  title: string;
  /** note says what the figures mean. */
  note?: ReactNode;
}

/** TableSection is a table under its title. */
export function TableSection<Row>({ title, note, ...table }: TableSectionProps<Row>) {
  return (
    <section>
      <Title order={2} size="h3">
        {title}
      </Title>
      {note !== undefined && <Text size="sm">{note}</Text>}
      <VirtualTable label={title} {...table} />
    </section>
  );
}
