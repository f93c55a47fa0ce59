// One deployment site: its hosts, and what its owner may change of it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { FleetSite } from "../../wire/customer/fleet.ts";
import { at, send } from "../api.ts";
import { useDoing } from "../doing.ts";
import { siteName, type LinkStanding } from "../fleet.ts";
import { useMayForAll } from "../session.ts";
import { ConfirmByName } from "./confirm-by-name.tsx";
import { HostsTable } from "./hosts-table.tsx";
import { Opens } from "./opens.tsx";
import { Button, TextField, Panel, RefusalNote } from "./pieces.tsx";
import { SiteCodes } from "./site-codes.tsx";
import { SiteSecret } from "./site-secret.tsx";

type SiteProps = { readonly site: FleetSite; readonly onChange: () => void };

export function SitePanel({
  site,
  standing,
  onChange,
}: SiteProps & { readonly standing: LinkStanding }): JSX.Element {
  const mayWrite = useMayForAll("write");
  const isOwner = useMayForAll("owner");
  const name = siteName(site);
  return (
    <Panel title={name} beside={<span class="quiet">site {site.deployment_site_id}</span>}>
      <HostsTable sites={[site]} standing={standing} caption={`Hosts of ${name}`} />
      {isOwner && (
        <Opens title={`Add a host to ${name}`}>
          {() => <SiteCodes id={site.deployment_site_id} name={name} />}
        </Opens>
      )}
      {mayWrite && (
        <Opens title={`Tags of ${name}`}>
          {() => <SiteTags key={site.deployment_tags} site={site} onChange={onChange} />}
        </Opens>
      )}
      {isOwner && (
        <Opens title={`New secret for ${name}, or its end`}>
          {() => (
            <>
              <SiteSecret id={site.deployment_site_id} name={name} />
              <SiteEnd site={site} onChange={onChange} />
            </>
          )}
        </Opens>
      )}
    </Panel>
  );
}

function SiteTags({ site, onChange }: SiteProps): JSX.Element {
  const { deployment_site_id: id, deployment_tags: before } = site;
  const [tags, setTags] = useState(before);
  const doing = useDoing();
  const save = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      await send("PUT", at`/deployment-site/${id}/`, { tags });
      onChange();
    });
  };
  return (
    <form onSubmit={save}>
      <TextField
        label="Tags"
        value={tags}
        onInput={setTags}
        hint="With commas between. Domains that are linked by tags follow at once: they come to this site, or leave it."
      />
      <Button
        submits
        disabled={doing.isBusy || tags === before}
        label={`Save the tags of ${site.name16}`}
      >
        Save the tags
      </Button>
      <RefusalNote failure={doing.failure} />
    </form>
  );
}

function SiteEnd({ site, onChange }: SiteProps): JSX.Element {
  const { deployment_site_id: id, name16, instances, domains } = site;
  const doing = useDoing();
  const remove = (): void => {
    void doing.run(async () => {
      await send("DELETE", at`/deployment-site/${id}/`);
      onChange();
    });
  };
  const loses = [
    instances.length > 0 ? "Its hosts are shut out at once." : "",
    domains.length > 0 ? `It serves ${domains.join(", ")}.` : "",
  ];
  return (
    <>
      <h3>End</h3>
      <p class="quiet">Only the user who made a site may delete it.</p>
      <ConfirmByName
        name={name16}
        doIt={`Delete the site ${name16}`}
        question={`Delete the deployment site ${siteName(site)} with its certificates and keys? ${loses.join(" ")}`}
        disabled={doing.isBusy}
        onYes={remove}
      />
      <RefusalNote failure={doing.failure} />
    </>
  );
}
