import { keepPreviousData, skipToken, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { askPreview } from "./preview";
import type { Question } from "./question";

// While something is dragged there is a new question with each movement of the pointer: the next one is asked when the one before was
// answered, or takes too long.
const pauseMilliseconds = 150;
const patienceMilliseconds = 2_000;

/** usePreview answers the latest question, and what it can of those before. */
export function usePreview(latest: Question | undefined) {
  const [asked, setAsked] = useState(latest);
  const next = useRef(latest);
  const preview = useQuery({
    queryKey: ["preview", asked],
    queryFn: asked ? ({ signal }) => askPreview(asked.text, asked.query, signal) : skipToken,
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 10_000,
  });
  const { isFetching } = preview;
  const isOld = asked !== latest;
  useEffect(() => {
    next.current = latest;
  }, [latest]);
  useEffect(() => {
    if (!isOld) return;
    const timer = setTimeout(() => {
      setAsked(next.current);
    }, isFetching ? patienceMilliseconds : pauseMilliseconds);
    return () => {
      clearTimeout(timer);
    };
  }, [isFetching, isOld, asked]);
  return preview;
}
