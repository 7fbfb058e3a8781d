import { useVirtualizer, type VirtualItem } from "@tanstack/react-virtual";
import { useRef, type RefObject } from "react";

/** Rows of a long list that are drawn: those in view and some around them. */
export interface Rows {
  /** scroller is for the element that scrolls. */
  scroller: RefObject<HTMLDivElement | null>;
  items: VirtualItem[];
  /** height of all rows together, in pixels. */
  height: number;
  scrollTo: (index: number) => void;
}

/** useRows says which of many rows of equal height to draw. */
export function useRows(count: number, rowHeight: number): Rows {
  const scroller = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- what it returns is read here, at each change
  const virtual = useVirtualizer({ count, getScrollElement: () => scroller.current, estimateSize: () => rowHeight, overscan: 10 });
  return {
    scroller,
    items: virtual.getVirtualItems(),
    height: virtual.getTotalSize(),
    scrollTo: (index) => {
      virtual.scrollToIndex(index, { align: "end" });
    },
  };
}
