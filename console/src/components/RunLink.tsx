import { Anchor, type AnchorProps } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

interface RunLinkProps extends Pick<AnchorProps, "size" | "inherit"> {
  run: { namespace: string; uid: string };
  /** part of the page; its overview without one. */
  part?: string;
  title?: string;
  children: ReactNode;
}

/** RunLink leads to the page of an archived run. */
export function RunLink({ run: { namespace, uid }, part, ...anchor }: RunLinkProps) {
  return <Anchor underline="always" {...anchor} renderRoot={(props) => <Link {...props} to="/ns/$namespace/runs/$uid" params={{ namespace, uid }} search={(part === undefined ? {} : { part }) as never} />} />;
}
