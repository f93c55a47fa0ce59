// Makes a domain, served by the sites that have certain tags, by one site, or by none yet.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Domain } from "../../wire/customer/domain.ts";
import { send } from "../api.ts";
import { useDoing } from "../doing.ts";
import { hrefTo } from "../route.ts";
import type { DomainsProps } from "./domain-props.ts";
import { Button, Choice, Choices, TextField, Note, Panel, RefusalNote } from "./pieces.tsx";

type LinkedBy = "tags" | "site" | "nothing";

export function NewDomain({ sites, onChange }: DomainsProps): JSX.Element {
  const [name, setName] = useState("");
  const [by, setBy] = useState<LinkedBy>("tags");
  const [tags, setTags] = useState("");
  const [picked, setPicked] = useState("");
  const [made, setMade] = useState<string>();
  const doing = useDoing();
  const site = sites.find(({ id }) => String(id) === picked) ?? sites[0];
  const make = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      const domain = await send<Domain>("POST", "/domain/", {
        name: name.trim(),
        ...(by === "tags" && { link_to_deployment_sites_with_tags: tags }),
        ...(by === "site" && { deployment_site_id: site?.id }),
      });
      setMade(domain.name);
      setName("");
      onChange();
    });
  };
  return (
    <Panel title="Another domain">
      <form onSubmit={make}>
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          isRequired
          placeholder="www.example.com"
        />
        <Choices
          label="Served by"
          value={by}
          options={[
            ["tags", "Sites with tags"],
            ...(sites.length > 0 ? [["site", "One site"] as const] : []),
            ["nothing", "No site yet"],
          ]}
          onChange={setBy}
        />
        {by === "tags" && (
          <TextField
            label="Tags"
            value={tags}
            onInput={setTags}
            isRequired
            placeholder="production,eu"
            hint="Every site that has all of them serves the domain, sites that are made later as well."
          />
        )}
        {by === "site" && site !== undefined && (
          <Choice
            label="Site"
            value={String(site.id)}
            options={sites.map((one) => [String(one.id), one.name])}
            onChange={setPicked}
          />
        )}
        <Button submits disabled={doing.isBusy}>
          Make the domain
        </Button>
      </form>
      {made !== undefined && (
        <Note tone="good">
          {made} was made; it serves nothing until{" "}
          <a href={hrefTo(["d", made, "versions"])}>a version of it is active</a>, and refuses bots
          that nobody reviewed.
        </Note>
      )}
      <RefusalNote failure={doing.failure} />
    </Panel>
  );
}
