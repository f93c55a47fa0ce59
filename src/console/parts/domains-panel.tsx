// The customer's domains: which sites serve each, its sub-domains, a new one, and the end of one.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Domain } from "../../wire/customer/domain.ts";
import type { Asked } from "../asked.ts";
import { hrefTo } from "../route.ts";
import { useMay, useMayForAll } from "../session.ts";
import { DomainLinks } from "./domain-links.tsx";
import { DomainEnd } from "./domain-end.tsx";
import type { DomainProps, DomainsProps } from "./domain-props.ts";
import { NewDomain } from "./new-domain.tsx";
import { Answer, Button, Panel, Table } from "./pieces.tsx";
import { SubDomains } from "./sub-domains.tsx";

export function DomainsPanel({
  asked,
  ...props
}: DomainsProps & { readonly asked: Asked<readonly Domain[]> }): JSX.Element {
  const mayMake = useMayForAll("write");
  const [opened, setOpened] = useState<string>();
  const domain = asked.value?.find(({ name }) => name === opened);
  return (
    <>
      <Panel title="Domains">
        <Answer asked={asked}>
          {(found) =>
            found.length === 0 ? (
              <p class="quiet">There is no domain yet.</p>
            ) : (
              <Table caption="Domains" heads={["Domain", "Served by", "Sub-domains", ""]}>
                {found.map((one) => (
                  <DomainLine
                    key={one.name}
                    domain={one}
                    sites={props.sites}
                    onOpen={() => setOpened(one.name)}
                  />
                ))}
              </Table>
            )
          }
        </Answer>
      </Panel>
      {domain !== undefined && (
        <DomainChanges
          key={domain.name}
          domain={domain}
          {...props}
          onClose={() => setOpened(undefined)}
        />
      )}
      {mayMake && <NewDomain {...props} />}
    </>
  );
}

function DomainLine({
  domain: { name, sub_domains: subDomains, deployment_sites: linked },
  sites,
  onOpen,
}: Pick<DomainProps, "domain" | "sites"> & { readonly onOpen: () => void }): JSX.Element {
  const mayWrite = useMay("write");
  return (
    <tr>
      <th scope="row">
        <a href={hrefTo(["d", name])}>{name}</a>
      </th>
      <td class="long">
        {linked.length === 0 ? (
          <span class="warn">no site</span>
        ) : (
          linked.map(({ id }) => sites.find((site) => site.id === id)?.name ?? id).join(", ")
        )}
      </td>
      <td class="long">
        {subDomains.length === 0 ? "–" : subDomains.map((one) => one.name).join(", ")}
      </td>
      <td>
        {mayWrite && (
          <Button label={`Change ${name}`} onClick={onOpen}>
            Change
          </Button>
        )}
      </td>
    </tr>
  );
}

function DomainChanges({
  onClose,
  ...props
}: DomainProps & { readonly onClose: () => void }): JSX.Element {
  const { name } = props.domain;
  const mayLink = useMayForAll("write");
  const mayEnd = useMayForAll("owner");
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    place.current?.focus();
    place.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <div ref={place} tabIndex={-1}>
      <Panel
        title={`Change ${name}`}
        beside={
          <Button label={`Close the changes of ${name}`} onClick={onClose}>
            Close
          </Button>
        }
      >
        {mayLink && <DomainLinks {...props} />}
        <SubDomains {...props} />
        {mayEnd && <DomainEnd {...props} />}
      </Panel>
    </div>
  );
}
