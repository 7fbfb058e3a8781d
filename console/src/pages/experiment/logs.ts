import type { Manifest } from "../../archive/types";

/** LogFile is a log of an app on a node in the archive. */
export interface LogFile {
  path: string;
  node: string;
  app: string;
  file: string;
  bytes: number;
}

const collator = new Intl.Collator("en", { numeric: true });

/** logsOf the files of a run: by node and app, what apps print before what the platform records. */
export function logsOf(files: NonNullable<Manifest["files"]>): LogFile[] {
  const logs = files.flatMap(({ path, bytes }) => {
    const [folder, node, app, ...rest] = path.split("/");
    return folder === "logs" && node !== undefined && app !== undefined && rest.length > 0 ? [{ path, node, app, file: rest.join("/"), bytes }] : [];
  });
  return logs.sort((a, b) => collator.compare(a.node, b.node) || collator.compare(a.app, b.app) || Number(isRecord(a)) - Number(isRecord(b)) || collator.compare(a.file, b.file));
}

function isRecord(log: LogFile): boolean {
  return log.file.endsWith(".jsonl");
}
