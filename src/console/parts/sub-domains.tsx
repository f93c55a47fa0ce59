// Sub-domains of a domain: each serves the files of the main domain, or a version of its own.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { at, send } from "../api.ts";
import { useDoing } from "../doing.ts";
import type { DomainProps } from "./domain-props.ts";
import { Button, Check, TextField, RefusalNote } from "./pieces.tsx";

export function SubDomains({ domain, onChange }: DomainProps): JSX.Element {
  const { name: main, sub_domains: known } = domain;
  const [name, setName] = useState("");
  const [isShared, setShared] = useState(true);
  const doing = useDoing();
  const put = async (subDomain: string, share: boolean): Promise<void> => {
    await send("PUT", at`/domain/${main}/`, {
      sub_domain: { name: subDomain, share_views_and_views_dir_with_main_domain: share },
    });
    onChange();
  };
  const add = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      await put(name.trim(), isShared);
      setName("");
    });
  };
  return (
    <>
      <h3>Sub-domains</h3>
      {known.map((one) => (
        <Check
          key={one.name}
          label={`${one.name} shares the views of ${main}`}
          isOn={one.share_views_and_views_dir_with_main_domain}
          onChange={(share) => void doing.run(async () => put(one.name, share))}
        />
      ))}
      <form onSubmit={add}>
        <TextField
          label={`Another sub-domain of ${main}`}
          value={name}
          onInput={setName}
          placeholder={`img.${main}`}
          hint="The whole host name"
          isRequired
        />
        <Check label={`It shares the views of ${main}`} isOn={isShared} onChange={setShared} />
        <Button submits disabled={doing.isBusy} label={`Add a sub-domain to ${main}`}>
          Add
        </Button>
      </form>
      <RefusalNote failure={doing.failure} />
    </>
  );
}
