// Deployment sites with their hosts, and which domains each serves.

import type { JSX } from "preact";
import type { Domain } from "../../wire/customer/domain.ts";
import { useAsked } from "../asked.ts";
import { siteName, useFleet, useStanding } from "../fleet.ts";
import { DomainsPanel } from "../parts/domains-panel.tsx";
import { NewSite } from "../parts/new-site.tsx";
import { Answer, Panel } from "../parts/pieces.tsx";
import { SitePanel } from "../parts/site-panel.tsx";
import { useMayForAll } from "../session.ts";

export function HostsPage(): JSX.Element {
  const fleet = useFleet();
  const standing = useStanding(fleet);
  const domains = useAsked<readonly Domain[]>("/domain/", { topics: ["domains", "sites"] });
  const mayMake = useMayForAll("owner");
  const again = (): void => {
    fleet.again();
    domains.again();
  };
  return (
    <>
      <h1>Hosts</h1>
      <Answer asked={fleet}>
        {({ sites }) =>
          sites.length === 0 ? (
            <Panel title="Deployment sites">
              <p class="quiet">There is none yet.</p>
            </Panel>
          ) : (
            sites.map((site) => (
              <SitePanel
                key={site.deployment_site_id}
                site={site}
                standing={standing}
                onChange={again}
              />
            ))
          )
        }
      </Answer>
      {mayMake && <NewSite onMade={again} />}
      <DomainsPanel
        asked={domains}
        sites={(fleet.value?.sites ?? []).map((site) => ({
          id: site.deployment_site_id,
          name: siteName(site),
        }))}
        onChange={again}
      />
    </>
  );
}
