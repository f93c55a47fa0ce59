// Around every page: what there is, who is signed in, and whether changes are being told. The table of pages is here.

import type { ComponentType, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { send } from "./api.ts";
import { useIsLive } from "./live.ts";
import { hrefTo, useRoute } from "./route.ts";
import { useSession } from "./session.ts";
import type { PageProps } from "./frame-props.ts";
import type { ApiSession } from "../wire/customer/session.ts";
import { mayAct, type Role } from "../core/roles.ts";
import { CentralLost } from "./parts/central-lost.tsx";
import { FaultBoundary } from "./parts/fault-boundary.tsx";
import { Button, Note } from "./parts/pieces.tsx";
import { AccessPage } from "./pages/access.tsx";
import { AuditPage } from "./pages/audit.tsx";
import { CertificatesPage } from "./pages/certificates.tsx";
import { DomainPage } from "./pages/domain.tsx";
import { HostsPage } from "./pages/hosts.tsx";
import { NotificationsPage } from "./pages/notifications.tsx";
import { OverviewPage } from "./pages/overview.tsx";

type Page = {
  readonly part: string;
  readonly title: string;
  readonly role: Role;
  /** `customer`: sessions that are for some domains alone are refused what it shows. */
  readonly scope: "domain" | "customer";
  readonly Shown: ComponentType<PageProps>;
};

const pages: readonly Page[] = [
  { part: "", title: "Overview", role: "read", scope: "domain", Shown: OverviewPage },
  { part: "hosts", title: "Hosts", role: "read", scope: "domain", Shown: HostsPage },
  {
    part: "certificates",
    title: "Certificates",
    role: "read",
    scope: "customer",
    Shown: CertificatesPage,
  },
  {
    part: "notifications",
    title: "Notifications",
    role: "read",
    scope: "domain",
    Shown: NotificationsPage,
  },
  { part: "access", title: "Access", role: "read", scope: "domain", Shown: AccessPage },
  { part: "audit", title: "Audit", role: "owner", scope: "customer", Shown: AuditPage },
];

const { timeZone } = Intl.DateTimeFormat().resolvedOptions();

function isFor({ role, scope }: Page, session: ApiSession): boolean {
  return mayAct(session.role, role) && (scope === "domain" || session.domains === null);
}

export function Shell({
  isNew,
  onOut,
}: {
  /** Somebody signed in just now, by the form. */
  readonly isNew: boolean;
  readonly onOut: () => void;
}): JSX.Element {
  const route = useRoute();
  const session = useSession();
  const isLive = useIsLive();
  const [first = ""] = route.parts;
  const page = pages.find(({ part }) => part === first);
  const content = useRef<HTMLElement>(null);
  const path = route.parts.join("/");
  const isFirst = useRef(!isNew);
  useEffect(() => {
    // Whoever uses a keyboard or hears the page is at its beginning after signing in, and after a click on a link.
    if (!isFirst.current) content.current?.focus();
    isFirst.current = false;
    window.scrollTo(0, 0);
  }, [path]);
  const title = first === "d" ? route.parts[1] : page?.title;
  useEffect(() => {
    document.title = `${title ?? "Not found"} · accel`;
  }, [title]);
  return (
    <div class="frame">
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          content.current?.focus();
        }}
      >
        Skip to the page
      </a>
      <nav aria-label="Pages">
        <strong>accel</strong>
        {pages
          .filter((one) => isFor(one, session))
          .map((one) => (
            <NavLink key={one.part} page={one} isCurrent={one === page} />
          ))}
        <div class="who">
          <span
            title={isLive ? "Changes show at once" : "Changes show within a minute"}
            class={isLive ? "good" : "quiet"}
          >
            ● {isLive ? "live" : "not live"}
          </span>{" "}
          <span title={`Times are those of ${timeZone}`}>{session.username}</span>{" "}
          <Button
            onClick={() => {
              void send("DELETE", "/session/").finally(onOut);
            }}
          >
            Sign out
          </Button>
        </div>
      </nav>
      <main ref={content} id="content" tabIndex={-1}>
        <CentralLost />
        <FaultBoundary of={`${path}?${route.query}`}>
          {first === "d" && route.parts[1] !== undefined ? (
            <DomainPage route={route} />
          ) : page === undefined ? (
            <NotFound />
          ) : !isFor(page, session) ? (
            <NotForYou title={page.title} />
          ) : (
            <page.Shown route={route} />
          )}
        </FaultBoundary>
      </main>
    </div>
  );
}

function NavLink({
  page,
  isCurrent,
}: {
  readonly page: Page;
  readonly isCurrent: boolean;
}): JSX.Element {
  return (
    <a href={hrefTo([page.part])} aria-current={isCurrent ? "page" : undefined}>
      {page.title}
    </a>
  );
}

function NotFound(): JSX.Element {
  return (
    <>
      <h1>Not found</h1>
      <p>
        There is no such page. <a href="#/">Overview</a>
      </p>
    </>
  );
}

function NotForYou({ title }: { readonly title: string }): JSX.Element {
  const { role, domains } = useSession();
  return (
    <>
      <h1>{title}</h1>
      <Note>
        This session may not look at it: its role is {role}
        {domains !== null && `, and it is for ${domains.join(", ")} alone`}.
      </Note>
    </>
  );
}
