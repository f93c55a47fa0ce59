// Hosts by deployment site: how each is linked, how far its logs are behind, and what it runs. What matters most comes first, for phones show no more.

import type { JSX } from "preact";
import type { FleetInstance, FleetSite } from "../../wire/customer/fleet.ts";
import { hostName, logsWords, linkWords, siteName, type LinkStanding } from "../fleet.ts";
import { count } from "../words.ts";
import { Badge, Table } from "./pieces.tsx";

export function HostsTable({
  sites,
  standing,
  caption = "Hosts",
}: {
  readonly sites: readonly FleetSite[];
  readonly standing: LinkStanding;
  readonly caption?: string;
}): JSX.Element {
  if (sites.length === 0) return <p class="quiet">There is no deployment site yet.</p>;
  return (
    <Table
      caption={caption}
      heads={[
        "Host",
        "Link",
        "Last logs",
        "Warnings",
        "Changes behind",
        "Release",
        "Serves",
        "Site",
      ]}
    >
      {sites.flatMap((site) =>
        site.instances.length === 0
          ? [
              <tr key={site.deployment_site_id}>
                <th scope="row" colSpan={6}>
                  {siteName(site)}: no host yet
                </th>
                <td>
                  <DomainNames names={site.domains} />
                </td>
                <td />
              </tr>,
            ]
          : site.instances.map((instance) => {
              const link = linkWords(instance, standing);
              return (
                <tr key={instance.instance_id}>
                  <th scope="row" title={instance.instance_id}>
                    {hostName(instance)}
                  </th>
                  <td>
                    <Badge tone={link.tone}>{link.text}</Badge>
                  </td>
                  <td>{logsWords(instance)}</td>
                  <td class={instance.warnings.length === 0 ? "" : "long"}>
                    <Warnings of={instance} />
                  </td>
                  <td>{instance.entries_behind ?? "–"}</td>
                  <td>
                    {instance.agent_version ?? "–"}{" "}
                    {instance.is_behind === true && <Badge tone="warn">older</Badge>}
                  </td>
                  <td>
                    <DomainNames names={site.domains} />
                  </td>
                  <td class="quiet">{siteName(site)}</td>
                </tr>
              );
            }),
      )}
    </Table>
  );
}

function Warnings({ of: { warnings } }: { readonly of: FleetInstance }): JSX.Element {
  if (warnings.length === 0) return <span class="quiet">none</span>;
  return (
    <ul class="plainly">
      {warnings.map(({ code, text }) => (
        <li key={code} class="warn">
          {text}
        </li>
      ))}
    </ul>
  );
}

const namesShown = 3;

/** A few of them; a site may serve hundreds. */
function DomainNames({ names }: { readonly names: readonly string[] }): JSX.Element {
  const more = names.length - namesShown;
  return more <= 1 ? (
    <>{names.join(", ")}</>
  ) : (
    <span title={names.join("\n")}>
      {names.slice(0, namesShown).join(", ")} and {count(more)} more
    </span>
  );
}
