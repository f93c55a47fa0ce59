// Hosts by deployment site: what each runs, how it is linked, and how far its logs are behind.

import type { JSX } from "preact";
import type { FleetSite } from "../../wire/customer/fleet.ts";
import { hostName, logsWords, linkWords, siteName, type Standing } from "../fleet.ts";
import { count } from "../words.ts";
import { Badge, Table } from "./pieces.tsx";

export function HostsTable({
  sites,
  standing,
  caption = "Hosts",
}: {
  readonly sites: readonly FleetSite[];
  readonly standing: Standing;
  readonly caption?: string;
}): JSX.Element {
  if (sites.length === 0) return <p class="quiet">There is no deployment site yet.</p>;
  return (
    <Table
      caption={caption}
      heads={[
        "Site",
        "Host",
        "Release",
        "Link",
        "Last logs",
        "Changes behind",
        "Warnings",
        "Serves",
      ]}
    >
      {sites.flatMap((site) =>
        site.instances.length === 0
          ? [
              <tr key={site.deployment_site_id}>
                <th scope="row">{siteName(site)}</th>
                <td class="quiet" colSpan={6}>
                  no host yet
                </td>
                <td>
                  <DomainNames names={site.domains} />
                </td>
              </tr>,
            ]
          : site.instances.map((instance) => {
              const link = linkWords(instance, standing);
              return (
                <tr key={instance.instance_id}>
                  <th scope="row">{siteName(site)}</th>
                  <td title={instance.instance_id}>{hostName(instance)}</td>
                  <td>
                    {instance.agent_version ?? "–"}{" "}
                    {instance.is_behind === true && <Badge tone="warn">older</Badge>}
                  </td>
                  <td>
                    <Badge tone={link.tone}>{link.text}</Badge>
                  </td>
                  <td>{logsWords(instance)}</td>
                  <td>{instance.entries_behind ?? "–"}</td>
                  <td class="long">
                    {instance.warnings.length === 0 ? (
                      <span class="quiet">none</span>
                    ) : (
                      <ul class="plainly">
                        {instance.warnings.map(({ code, text }) => (
                          <li key={code} class="warn">
                            {text}
                          </li>
                        ))}
                      </ul>
                    )}
                  </td>
                  <td>
                    <DomainNames names={site.domains} />
                  </td>
                </tr>
              );
            }),
      )}
    </Table>
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
