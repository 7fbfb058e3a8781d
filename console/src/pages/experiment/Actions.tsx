import { Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { CloneLink } from "../../components/CloneLink";
import { answering, Question } from "../../components/Question";
import { patch, remove } from "../../kubernetes/client";
import { useAccess } from "../../kubernetes/hooks";
import { experiments } from "../../kubernetes/kinds";
import type { Experiment } from "../../types";
import { isOver } from "./state";

/** Actions are the buttons of the page. What Kubernetes would refuse is not shown. */
export function Actions({ experiment: e }: { experiment: Experiment }) {
  const namespace = e.metadata.namespace ?? "";
  const right = { group: experiments.group, resource: experiments.plural, namespace };
  const mayStop = useAccess({ ...right, verb: "patch" });
  const mayDelete = useAccess({ ...right, verb: "delete" });
  const isBeingDeleted = e.metadata.deletionTimestamp !== undefined;
  return (
    <Group gap="xs">
      {e.status?.t0 && (
        <Button size="xs" variant="default" renderRoot={(props) => <Link {...props} to="/ns/$namespace/runs/$uid" params={{ namespace, uid: e.metadata.uid ?? "" }} />}>
          Results
        </Button>
      )}
      <CloneLink namespace={namespace} run={e.metadata.name} size="xs" />
      {mayStop && !isOver(e) && !isBeingDeleted && <Stop experiment={e} />}
      {mayDelete && !isBeingDeleted && <Delete experiment={e} />}
    </Group>
  );
}

function Stop({ experiment: e }: { experiment: Experiment }) {
  const stop = useMutation({ mutationFn: () => patch(experiments, e.metadata.namespace, e.metadata.name, { spec: { stop: true } }) });
  const begun = Boolean(e.status?.t0);
  const what = begun
    ? "Publishers stop, messages under way may arrive, and everything is collected and analysed as usual. A stop cannot be taken back."
    : "The experiment has not begun: nothing was measured, so that it will have no results. A stop cannot be taken back.";
  if (e.spec.stop) {
    return (
      <Button size="xs" variant="default" disabled>
        Is stopping
      </Button>
    );
  }
  return <Question button="Stop" title={`Stop ${e.metadata.name}?`} what={what} {...answering(stop)} />;
}

function Delete({ experiment: e }: { experiment: Experiment }) {
  const navigate = useNavigate();
  const { metadata } = e;
  const erase = useMutation({
    mutationFn: () => remove(experiments, metadata.namespace, metadata.name, metadata.uid ?? ""),
    onSuccess: () => navigate({ to: "/" }),
  });
  return <Question button="Delete" title={`Delete ${metadata.name}?`} what={whatDeletionMeans(e)} {...answering(erase)} />;
}

function whatDeletionMeans(e: Experiment): string {
  if (isOver(e)) return "The object goes. What the archive has of the run stays, with its results, until its retention is over.";
  if (!e.status?.t0) return "The experiment has not begun: nothing was measured, so that it will have no results.";
  return "The run ends now, without an analysis. Stop it instead to get the results of what was measured so far.";
}
