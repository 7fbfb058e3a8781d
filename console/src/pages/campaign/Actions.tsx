import { Button, Group, Modal, NumberInput, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answering, Question } from "../../components/Question";
import { Trouble } from "../../components/Trouble";
import { patch, remove } from "../../kubernetes/client";
import { useAccess } from "../../kubernetes/hooks";
import { campaigns } from "../../kubernetes/kinds";
import type { Campaign } from "../../types";
import { isOver } from "./round";

/** Actions are what the user may do with a campaign. What Kubernetes would refuse is not shown. */
export function Actions({ campaign, namespace }: { campaign: Campaign; namespace: string }) {
  const mayPatch = useAccess({ verb: "patch", group: "vignette.dev", resource: "campaigns", namespace });
  const mayDelete = useAccess({ verb: "delete", group: "vignette.dev", resource: "campaigns", namespace });
  const isBeingDeleted = campaign.metadata.deletionTimestamp !== undefined;
  const canChange = !isOver(campaign) && !isBeingDeleted;
  return (
    <Group gap="xs" align="end">
      {mayPatch && canChange && <Suspend campaign={campaign} namespace={namespace} />}
      {mayPatch && canChange && <Parallelism campaign={campaign} namespace={namespace} />}
      {mayDelete && !isBeingDeleted && <Delete campaign={campaign} namespace={namespace} />}
    </Group>
  );
}

interface ActionProps {
  campaign: Campaign;
  namespace: string;
}

function usePatch({ campaign, namespace }: ActionProps) {
  return useMutation({ mutationFn: (spec: Record<string, unknown>) => patch(campaigns, namespace, campaign.metadata.name, { spec }) });
}

function Suspend(props: ActionProps) {
  const change = usePatch(props);
  const suspended = props.campaign.spec.suspend === true;
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        loading={change.isPending}
        onClick={() => {
          change.mutate({ suspend: !suspended });
        }}
      >
        {suspended ? "Resume" : "Suspend"}
      </Button>
      <Trouble error={change.error} title="The campaign could not be changed" />
    </>
  );
}

function Parallelism(props: ActionProps) {
  const change = usePatch(props);
  const [opened, { open, close }] = useDisclosure(false);
  const now = props.campaign.spec.parallelism ?? 1;
  const [wanted, setWanted] = useState<number | string>(now);
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        onClick={() => {
          setWanted(now);
          open();
        }}
      >
        Runs at once: {now}
      </Button>
      <Modal opened={opened} onClose={close} title="How many runs at once">
        <Stack>
          <NumberInput label="Runs at once" description="Those for which there is no room wait in the queue." min={1} allowDecimal={false} value={wanted} onChange={setWanted} data-autofocus />
          <Trouble error={change.error} title="The campaign could not be changed" />
          <Button
            loading={change.isPending}
            disabled={typeof wanted !== "number"}
            onClick={() => {
              change.mutate({ parallelism: wanted }, { onSuccess: close });
            }}
          >
            Change
          </Button>
        </Stack>
      </Modal>
    </>
  );
}

function Delete({ campaign, namespace }: ActionProps) {
  const navigate = useNavigate();
  const deletion = useMutation({
    mutationFn: () => remove(campaigns, namespace, campaign.metadata.name, campaign.metadata.uid ?? ""),
    onSuccess: () => navigate({ to: "/" }),
  });
  const what = `Its experiments are deleted with it${isOver(campaign) ? "" : ", also those that are running"}. Archived results stay.`;
  return <Question button="Delete" title={`Delete campaign ${campaign.metadata.name}?`} what={what} {...answering(deletion)} />;
}
