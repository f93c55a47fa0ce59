// Around every page: what there is, who is signed in, and whether changes are being told. The table of pages is here.

import type { ComponentType, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { send } from "./api.ts";
import { useIsLive } from "./live.ts";
import { hrefTo, useRoute, type Route } from "./route.ts";
import { useMay, useSession } from "./session.ts";
import type { Role } from "../core/roles.ts";
import { Button } from "./parts/pieces.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { DomainPage } from "./pages/domain.tsx";

export type PageProps = { readonly route: Route };

type Page = {
  readonly part: string;
  readonly title: string;
  readonly role: Role;
  readonly Shown: ComponentType<PageProps>;
};

const pages: readonly Page[] = [{ part: "", title: "Overview", role: "read", Shown: OverviewPage }];

export function Frame({ onOut }: { readonly onOut: () => void }): JSX.Element {
  const route = useRoute();
  const session = useSession();
  const isLive = useIsLive();
  const [first = ""] = route.parts;
  const page = pages.find(({ part }) => part === first);
  const content = useRef<HTMLElement>(null);
  const path = route.parts.join("/");
  const isFirst = useRef(true);
  useEffect(() => {
    // Whoever uses a keyboard or hears the page is at its beginning after a click on a link.
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
        {pages.map((one) => (
          <NavLink key={one.part} page={one} isCurrent={one === page} />
        ))}
        <div class="who">
          <span
            title={isLive ? "Changes show at once" : "Changes show within a minute"}
            class={isLive ? "good" : "quiet"}
          >
            ● {isLive ? "live" : "not live"}
          </span>{" "}
          <span>{session.username}</span>{" "}
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
        {first === "d" && route.parts[1] !== undefined ? (
          <DomainPage route={route} />
        ) : page === undefined ? (
          <NotFound />
        ) : (
          <page.Shown route={route} />
        )}
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
}): JSX.Element | null {
  const may = useMay(page.role);
  if (!may) return null;
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
