// Makes a deployment site. Its hosts join by a code, so nobody has to carry its secret.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { DeploymentSite } from "../../wire/customer/deployment-site.ts";
import { send } from "../api.ts";
import { useDoing } from "../doing.ts";
import { Button, TextField, Note, Panel, RefusalNote } from "./pieces.tsx";

export function NewSite({ onMade }: { readonly onMade: () => void }): JSX.Element {
  const [tags, setTags] = useState("");
  const [made, setMade] = useState<string>();
  const doing = useDoing();
  const make = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      const { name16 } = await send<DeploymentSite>("POST", "/deployment-site/", { tags });
      setMade(name16);
      setTags("");
      onMade();
    });
  };
  return (
    <Panel title="Another deployment site">
      <form onSubmit={make}>
        <TextField
          label="Tags"
          value={tags}
          onInput={setTags}
          placeholder="production,eu"
          hint="With commas between, or none. Domains that are linked by tags follow them."
        />
        <Button submits disabled={doing.isBusy}>
          Make the site
        </Button>
      </form>
      {made !== undefined && (
        <Note tone="good">The site {made} was made. A code adds its first host: see above.</Note>
      )}
      <RefusalNote failure={doing.failure} />
    </Panel>
  );
}
