// The end of a domain.

import type { JSX } from "preact";
import { at, send } from "../api.ts";
import { useDoing } from "../doing.ts";
import { ConfirmByName } from "./confirm-by-name.tsx";
import type { DomainProps } from "./domain-props.ts";
import { RefusalNote } from "./pieces.tsx";

export function DomainEnd({ domain: { name }, onChange }: DomainProps): JSX.Element {
  const doing = useDoing();
  const remove = (): void => {
    void doing.run(async () => {
      await send("DELETE", at`/domain/${name}/`);
      onChange();
    });
  };
  return (
    <>
      <h3>End</h3>
      <p class="quiet">Only the user who made a domain may delete it.</p>
      <ConfirmByName
        name={name}
        doIt={`Delete ${name}`}
        question={`Delete ${name} with its sub-domains, versions and bots? No host serves it from then on.`}
        disabled={doing.isBusy}
        onYes={remove}
      />
      <RefusalNote failure={doing.failure} />
    </>
  );
}
