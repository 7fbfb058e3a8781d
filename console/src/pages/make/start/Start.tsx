import { Accordion, Anchor, Badge, Button, Card, Group, SimpleGrid, Stack, Text, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Trouble } from "../../../components/Trouble";
import { askJSON } from "../../../kubernetes/client";
import { studiesOf, titleText, type LibraryEntry, type Study } from "./library";

/** Start offers what an experiment can be made from. */
export function Start() {
  return (
    <Stack>
      <Title order={1}>New experiment</Title>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Card withBorder>
          <Stack gap="xs" align="start">
            <Title order={2} size="h4">
              Empty
            </Title>
            <Text size="sm">Two nodes, a link and a broker, to build on.</Text>
            <Button component={Link} to="/new" search={{ from: "empty" } as never}>
              Begin empty
            </Button>
          </Stack>
        </Card>
        <Card withBorder>
          <Stack gap="xs">
            <Title order={2} size="h4">
              Clone
            </Title>
            <Text size="sm">The page of a run has a button that makes another experiment of it, with the same spec and the same seed or a new one.</Text>
            <Group gap="md">
              <Anchor component={Link} to="/" size="sm">
                Look for a run
              </Anchor>
              <Anchor component={Link} to="/compare" size="sm">
                Look in the archive
              </Anchor>
            </Group>
          </Stack>
        </Card>
      </SimpleGrid>
      <Title order={2} size="h4">
        Library
      </Title>
      <Library />
    </Stack>
  );
}

function Library() {
  const [search, setSearch] = useState("");
  const { data, error, refetch } = useQuery({ queryKey: ["library"], queryFn: () => askJSON<LibraryEntry[]>("/console/v1/library"), staleTime: Infinity });
  if (error) return <Trouble error={error} onRetry={() => void refetch()} />;
  const studies = studiesOf(data ?? [], search);
  return (
    <Stack gap="xs">
      <TextInput
        label="Search the library"
        placeholder="mosquitto satcom"
        value={search}
        onChange={(event) => {
          setSearch(event.currentTarget.value);
        }}
      />
      {data && studies.length === 0 && <Text c="dimmed">Nothing in the library has all these words.</Text>}
      <Accordion multiple variant="separated" {...(search !== "" && { value: studies.map((s) => s.name) })} defaultValue={["quickstart"]} key={search === "" ? "all" : "found"}>
        {studies.map((study) => (
          <StudyItem key={study.name} study={study} />
        ))}
      </Accordion>
    </Stack>
  );
}

function StudyItem({ study }: { study: Study }) {
  return (
    <Accordion.Item value={study.name}>
      <Accordion.Control>
        {study.name} <Text span c="dimmed" size="sm">{`${study.entries.length}`}</Text>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack gap={6}>
          {study.entries.map((entry) => (
            <Group key={entry.path} gap="xs" align="baseline">
              <Anchor component={Link} to="/new" search={{ from: `library:${entry.path}` } as never}>
                {entry.name || entry.path}
              </Anchor>
              {entry.kind === "Campaign" && (
                <Badge variant="outline" tt="none">
                  Campaign
                </Badge>
              )}
              <Text size="sm" c="dimmed">
                {titleText(entry)}
              </Text>
            </Group>
          ))}
        </Stack>
      </Accordion.Panel>
    </Accordion.Item>
  );
}
