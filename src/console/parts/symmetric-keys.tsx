// The symmetric keys that seal certificates on their way to the hosts, by name. The keys themselves are never shown.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SymmetricKey } from "../../wire/customer/symmetric-key.ts";
import { send } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { useMayForAll } from "../session.ts";
import type { SiteNamed } from "./domain-props.ts";
import { Answer, Button, Choice, Panel, RefusalNote, Table } from "./pieces.tsx";
import { provedEveryMs, VaultState } from "./vault-state.tsx";

export function SymmetricKeys({ sites }: { readonly sites: readonly SiteNamed[] }): JSX.Element {
  const asked = useAsked<readonly SymmetricKey[]>("/symenckeys/", {
    topics: ["certificates"],
    everyMs: provedEveryMs,
  });
  const isOwner = useMayForAll("owner");
  return (
    <Panel title="Symmetric keys">
      <p class="quiet">They seal the certificates of a site on their way to its hosts.</p>
      <Answer asked={asked}>
        {(found) =>
          found.length === 0 ? (
            <p class="quiet">There is none.</p>
          ) : (
            <Table caption="Symmetric keys" heads={["Key", "Site", "State"]}>
              {found.map(({ id, name, deployment_site_id: siteId, state, error }) => (
                <tr key={id}>
                  <th scope="row">{name}</th>
                  <td>{sites.find((site) => site.id === siteId)?.name ?? siteId}</td>
                  <td>
                    <VaultState state={state} error={error} />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
      {isOwner && <NewKey sites={sites} onMade={asked.again} />}
    </Panel>
  );
}

function NewKey({
  sites,
  onMade,
}: {
  readonly sites: readonly SiteNamed[];
  readonly onMade: () => void;
}): JSX.Element {
  const [picked, setPicked] = useState("");
  const doing = useDoing();
  const site = sites.find(({ id }) => String(id) === picked) ?? sites[0];
  const make = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      await send("POST", "/symenckeys/", { deployment_site_id: site?.id });
      onMade();
    });
  };
  return (
    <form class="row" onSubmit={make}>
      <Choice
        label="Another key for"
        value={String(site?.id ?? "")}
        options={sites.map(({ id, name }) => [String(id), name])}
        onChange={setPicked}
      />
      <Button submits disabled={doing.isBusy} label={`Make a key for ${site?.name ?? ""}`}>
        Make a key
      </Button>
      <RefusalNote failure={doing.failure} />
    </form>
  );
}
