import { ActionIcon, Anchor, AppShell, Burger, Button, Group, NavLink, Text, Tooltip, useMantineColorScheme } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { Trouble } from "../components/Trouble";
import { span } from "../components/time";
import { useAdministration } from "./administrator";
import { useClockOffset } from "./clock";
import { Login } from "./Login";
import { sections, useNewPage } from "./page";
import { logOut, useSession } from "./session";
import { leaveTab } from "./tab";

/** Shell is what all pages share: the name, the sections, who the user is. */
export function Shell() {
  const session = useSession();
  const [open, { toggle, close }] = useDisclosure(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  useNewPage(path);
  const administrator = useAdministration().allowed;
  // A reloaded page forgets all that the user has seen.
  const leaving = useMutation({
    mutationFn: logOut,
    onSuccess: () => {
      leaveTab(); // drafts, and curves of runs, are not for the next user
      window.location.assign("/");
    },
  });
  const shown = sections.filter(({ to }) => to !== "/admin" || administrator);
  if (session.error) return <Login error={session.error} />;
  return (
    <AppShell header={{ height: 52 }} navbar={{ width: 200, breakpoint: "sm", collapsed: { mobile: !open } }} padding="md">
      <Anchor href="#main" className="skip">
        Skip to the content
      </Anchor>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={open} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Sections" aria-expanded={open} />
            <img src="/icon.svg" alt="" width={28} height={28} />
            <Text fw={700}>vignette</Text>
          </Group>
          <Group gap="sm" wrap="nowrap">
            {session.data && (
              <Text size="sm" c="dimmed" truncate visibleFrom="xs">
                {session.data.user}
                {session.data.context ? ` at ${session.data.context}` : ""}
              </Text>
            )}
            {session.data?.mode === "team" && (
              <Button
                variant="default"
                size="compact-sm"
                loading={leaving.isPending}
                onClick={() => {
                  leaving.mutate();
                }}
              >
                Log out
              </Button>
            )}
            <SchemeButton />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Sections">
        {shown.map(({ to, label }) => (
          <NavLink key={to} component={Link} to={to} label={label} active={path === to} onClick={close} {...(path === to && { "aria-current": "page" as const })} />
        ))}
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <Trouble error={leaving.error} title="You are still logged in" />
        <WrongClock />
        <Outlet />
      </AppShell.Main>
    </AppShell>
  );
}

const noticedSeconds = 2;

/** WrongClock says that the browser's clock is off. */
export function WrongClock() {
  const seconds = useClockOffset() / 1000;
  if (Math.abs(seconds) <= noticedSeconds) return null;
  return (
    <Text size="sm" role="status">
      This computer&apos;s clock is {span(Math.abs(seconds))} {seconds > 0 ? "behind" : "ahead of"} the cluster&apos;s. The page goes by the cluster&apos;s.
    </Text>
  );
}

function SchemeButton() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const next = colorScheme === "auto" ? "dark" : colorScheme === "dark" ? "light" : "auto";
  const label = `Colours: ${colorScheme === "auto" ? "as the system's" : colorScheme}. Change to ${next === "auto" ? "the system's" : next}`;
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="default"
        size="lg"
        aria-label={label}
        onClick={() => {
          setColorScheme(next);
        }}
      >
        {colorScheme === "auto" ? "◐" : colorScheme === "dark" ? "●" : "○"}
      </ActionIcon>
    </Tooltip>
  );
}
