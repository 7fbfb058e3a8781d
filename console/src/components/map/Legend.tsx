import { Group, Text, useComputedColorScheme } from "@mantine/core";
import { classLabel, classes, measures, styleOf, unknownClass, type Measure } from "./scale";
import { ink } from "./sprites";

/** Legend says what colours, lines and shapes of the map mean. */
export function Legend({ measure, signs }: { measure: Measure; signs?: { ranges: boolean; reported: boolean } }) {
  const scheme = useComputedColorScheme("light");
  const order = [...Array.from({ length: classes }, (_, i) => i), unknownClass];
  return (
    <Group gap="md" role="group" aria-label="Legend of the map">
      <Text size="sm" fw={600}>
        {measures[measure].label}, the worse direction
      </Text>
      {order.map((linkClass) => {
        const { colour, width, dash } = styleOf(linkClass, scheme);
        return (
          <Group key={linkClass} gap={6} wrap="nowrap">
            <svg width={36} height={12} aria-hidden>
              <line x1={0} x2={36} y1={6} y2={6} stroke={colour} strokeWidth={width} strokeDasharray={dash.join(" ")} />
            </svg>
            <Text size="sm">{classLabel(measure, linkClass)}</Text>
          </Group>
        );
      })}
      {signs && <Signs scheme={scheme} {...signs} />}
    </Group>
  );
}

function Signs({ scheme, ranges, reported }: { scheme: "light" | "dark"; ranges: boolean; reported: boolean }) {
  const { mark, jammer } = ink[scheme];
  return (
    <>
      <Group gap={6} wrap="nowrap">
        <svg width={16} height={16} viewBox="-8 -8 16 16" aria-hidden fill="none" stroke={mark} strokeWidth={1.75}>
          <path d="M6 2.5 2.5 6H-2.5L-6 2.5V-2.5L-2.5-6H2.5L6-2.5ZM-4.5 4.5 4.5-4.5" />
        </svg>
        <Text size="sm">silent radio</Text>
      </Group>
      {reported && (
        <Group gap={6} wrap="nowrap">
          <svg width={24} height={12} viewBox="0 -6 24 12" aria-hidden fill="none" stroke={mark} strokeWidth={1.25}>
            <circle cx={6} r={4} />
            <path d="M6 0H24" />
          </svg>
          <Text size="sm">reported position</Text>
        </Group>
      )}
      <Group gap={6} wrap="nowrap">
        <svg width={24} height={24} viewBox="-12 -12 24 24" aria-hidden stroke={jammer} strokeWidth={2} fill={jammer}>
          <circle r={4} stroke="none" />
          <path d="M4 0h7M-4 0h-7M0 4v7M0-4v-7M3 3l5 5M-3-3l-5-5M3-3l5-5M-3 3l-5 5" />
        </svg>
        <Text size="sm">{ranges ? "jammer and its range" : "jammer"}</Text>
      </Group>
    </>
  );
}
