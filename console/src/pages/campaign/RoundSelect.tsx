import { Select } from "@mantine/core";
import { useChoices } from "../../components/address";

/** RoundSelect chooses a round of a campaign that has had several. */
export function RoundSelect({ current, archived, round }: { current: number; archived: readonly number[]; round: number }) {
  const [, choose] = useChoices();
  const earlier = Array.from({ length: Math.max(0, current - 1) }, (_, i) => i + 1);
  const rounds = [...new Set([...archived, ...earlier, ...(current > 0 ? [current] : [])])].sort((a, b) => b - a);
  if (rounds.length < 2) return null;
  return (
    <Select
      label="Round"
      w={240}
      data={rounds.map((each) => ({ value: String(each), label: each === current ? `${each}, the newest` : String(each) }))}
      value={String(round)}
      allowDeselect={false}
      onChange={(value) => {
        choose({ round: value === null || Number(value) === current ? undefined : value });
      }}
    />
  );
}
