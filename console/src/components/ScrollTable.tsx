import { Table } from "@mantine/core";
import type { ReactNode } from "react";

/** ScrollTable holds a table that may be larger than its place. The keyboard scrolls it too. */
export function ScrollTable({ label, minWidth, maxHeight, children }: { label: string; minWidth: number; maxHeight?: number; children: ReactNode }) {
  return (
    <Table.ScrollContainer minWidth={minWidth} {...(maxHeight !== undefined && { maxHeight })} scrollAreaProps={{ viewportProps: { tabIndex: 0, role: "region", "aria-label": label } }}>
      {children}
    </Table.ScrollContainer>
  );
}
