// Which deployment sites serve a domain: links by id are made and taken away; those by tags follow the tags of the sites.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { at, send } from "../api.ts";
import { useDoing } from "../doing.ts";
import type { DomainProps } from "./domain-props.ts";
import { Button, Choice, Confirm, RefusalNote } from "./pieces.tsx";

export function DomainLinks({ domain, sites, onChange }: DomainProps): JSX.Element {
  const { name, deployment_sites: linked } = domain;
  const free = sites.filter(({ id }) => !linked.some((one) => one.id === id));
  const [picked, setPicked] = useState("");
  const site = free.find(({ id }) => String(id) === picked) ?? free[0];
  const doing = useDoing();
  const change = (action: () => Promise<unknown>): void => {
    void doing.run(async () => {
      await action();
      onChange();
    });
  };
  const link = (event: Event): void => {
    event.preventDefault();
    if (site !== undefined)
      change(async () => send("PUT", at`/domain/${name}/`, { deployment_site_id: site.id }));
  };
  return (
    <>
      <h3>Sites</h3>
      <ul class="plainly">
        {linked.map(({ id }) => {
          const siteText = sites.find((one) => one.id === id)?.name ?? `site ${id}`;
          return (
            <li key={id}>
              {siteText}{" "}
              <Confirm
                question={`Let ${siteText} serve ${name} no longer?`}
                doIt={`Unlink ${name}`}
                label={`Unlink ${name} from ${siteText}`}
                disabled={doing.isBusy}
                onYes={() =>
                  change(async () => send("DELETE", at`/domain/${name}/deployment-sites/${id}/`))
                }
              >
                Unlink
              </Confirm>
            </li>
          );
        })}
      </ul>
      {site !== undefined && (
        <form class="row" onSubmit={link}>
          <Choice
            label="Another site"
            value={String(site.id)}
            options={free.map((one) => [String(one.id), one.name])}
            onChange={setPicked}
          />
          <Button submits disabled={doing.isBusy} label={`Link ${name} to ${site.name}`}>
            Link
          </Button>
        </form>
      )}
      <RefusalNote failure={doing.failure} />
    </>
  );
}
