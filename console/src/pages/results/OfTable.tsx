import { Loader, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { filesQuery } from "../../archive/runs";
import type { ManifestFile } from "../../archive/types";
import { Trouble } from "../../components/Trouble";

interface OfTableProps {
  namespace: string;
  uid: string;
  title: string;
  /** path of the table in the archive. */
  path: string;
  children: (file: ManifestFile) => ReactNode;
}

/** OfTable shows something of a table in the archive, or says why it is not there. */
export function OfTable({ namespace, uid, title, path, children }: OfTableProps) {
  const { data, error } = useQuery(filesQuery(namespace, uid));
  const file = data?.files?.find((entry) => entry.path === path);
  if (error) return <Trouble error={error} title={`${title}: the table could not be read`} />;
  if (!data) return <Loader aria-label={`${title}: the table is being read`} />;
  return file ? children(file) : <Text size="sm">{`${title}: the archive has no ${path}.`}</Text>;
}
