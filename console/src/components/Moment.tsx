import { Text, Tooltip } from "@mantine/core";
import { useNow } from "../app/clock";
import { fromT0, span, utc } from "./time";

interface MomentProps {
  /** time in the form of RFC 3339; nothing is shown without one. */
  time: string | null | undefined;
  /** t0 of the run to which the time belongs. */
  t0?: string | null | undefined;
}

/** Moment shows a time in UTC, and as T0+x where there is a T0. */
export function Moment({ time, t0 }: MomentProps) {
  if (!time) return null;
  const at = new Date(time);
  return (
    <time dateTime={time}>
      {utc(at)}
      {t0 ? ` (${fromT0(at, new Date(t0))})` : ""}
    </time>
  );
}

/** Age shows how long ago a time was; hovering shows the time. */
export function Age({ time }: { time: string | null | undefined }) {
  const now = useNow();
  if (!time) return null;
  return (
    <Tooltip label={utc(new Date(time))}>
      <Text component="time" inherit dateTime={time}>
        {span(Math.max(0, (now - new Date(time).getTime()) / 1000))}
      </Text>
    </Tooltip>
  );
}
