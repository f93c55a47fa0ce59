// The pages of one domain: traffic, clear, bots, versions, logs.

import type { ComponentType, JSX } from "preact";
import { hrefTo, type Route } from "../route.ts";
import type { TabProps } from "../tab.ts";
import { BotsTab } from "./bots.tsx";
import { ClearTab } from "./clear.tsx";
import { LogsTab } from "./logs.tsx";
import { TrafficTab } from "./traffic.tsx";
import { VersionsTab } from "./versions.tsx";

const tabs: readonly {
  readonly part: string;
  readonly title: string;
  readonly Shown: ComponentType<TabProps>;
}[] = [
  { part: "traffic", title: "Traffic", Shown: TrafficTab },
  { part: "clear", title: "Clear", Shown: ClearTab },
  { part: "bots", title: "Bots", Shown: BotsTab },
  { part: "versions", title: "Versions", Shown: VersionsTab },
  { part: "logs", title: "Logs", Shown: LogsTab },
];

export function DomainPage({ route }: { readonly route: Route }): JSX.Element {
  const [, domain = "", part = "traffic"] = route.parts;
  const tab = tabs.find((one) => one.part === part);
  return (
    <>
      <h1>{domain}</h1>
      <nav class="tabs" aria-label={`Pages of ${domain}`}>
        {tabs.map((one) => (
          <a
            key={one.part}
            href={hrefTo(["d", domain, one.part])}
            aria-current={one === tab ? "page" : undefined}
          >
            {one.title}
          </a>
        ))}
      </nav>
      {tab === undefined ? (
        <p>There is no such page.</p>
      ) : (
        <tab.Shown key={`${domain} ${tab.part}`} domain={domain} route={route} />
      )}
    </>
  );
}
