export interface SortBy {
  id: string;
  descending: boolean;
}

interface Sortable<Row> {
  id: string;
  value: (row: Row) => string | number | null | undefined;
}

const texts = new Intl.Collator("en", { numeric: true });

/** sortRows returns the rows in order of a column. Rows without a value come last, in either direction. */
export function sortRows<Row>(rows: readonly Row[], columns: readonly Sortable<Row>[], by: SortBy | undefined): readonly Row[] {
  const column = columns.find(({ id }) => id === by?.id);
  if (!column || !by) return rows;
  const direction = by.descending ? -1 : 1;
  return [...rows].sort((x, y) => {
    const a = column.value(x) ?? undefined;
    const b = column.value(y) ?? undefined;
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    return direction * (typeof a === "number" && typeof b === "number" ? a - b : texts.compare(String(a), String(b)));
  });
}

/** sortFrom reads what writeSort has written into an address: a column, with a minus before it for descending. */
export function sortFrom(text: string | undefined): SortBy | undefined {
  if (text === undefined) return undefined;
  return text.startsWith("-") ? { id: text.slice(1), descending: true } : { id: text, descending: false };
}

export function writeSort(by: SortBy | undefined): string | undefined {
  return by && (by.descending ? `-${by.id}` : by.id);
}
