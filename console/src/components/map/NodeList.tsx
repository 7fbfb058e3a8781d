import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, type KeyboardEvent } from "react";
import style from "./map.module.css";

export interface NodeRow {
  name: string;
  /** words beside the name, such as hops, or that it is silent. */
  words: string;
}

const rowHeight = 26;

/** NodeList says in words what the map shows, and selects nodes by keyboard. */
export function NodeList({ rows, selected, height, onSelect, label }: { rows: readonly NodeRow[]; selected: string | undefined; height: number; onSelect: (name: string | undefined) => void; label: string }) {
  const list = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- nothing here is memoised by hand
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => list.current, estimateSize: () => rowHeight, overscan: 8 });
  const index = rows.findIndex((row) => row.name === selected);
  const { scrollToIndex } = virtual;
  useEffect(() => {
    if (index >= 0) scrollToIndex(index);
  }, [index, scrollToIndex]);

  const onKeyDown = (event: KeyboardEvent) => {
    const move = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const next = rows[Math.max(0, index + move)];
    if (move === 0 || !next) return;
    event.preventDefault();
    onSelect(next.name);
  };
  return (
    <div ref={list} className={style.list} style={{ height }} role="group" aria-label={label} tabIndex={0} onKeyDown={onKeyDown}>
      <div className={style.rows} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          const isSelected = row.name === selected;
          return (
            <button
              key={row.name}
              type="button"
              className={style.row}
              style={{ top: item.start, height: rowHeight }}
              aria-pressed={isSelected}
              onClick={() => {
                onSelect(isSelected ? undefined : row.name);
              }}
            >
              <span>{row.name}</span>
              <span>{row.words}</span>
            </button>
          );
        })}
      </div>
    </div>
  );
}
