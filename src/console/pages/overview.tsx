// The first page: what needs attention, the domains with their last day, and the hosts.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Alert } from "../../wire/customer/alert.ts";
import type { Analytics } from "../../wire/customer/analytics.ts";
import type { Domain } from "../../wire/customer/domain.ts";
import type { Fleet } from "../../wire/customer/fleet.ts";
import { at } from "../api.ts";
import { useAsked, type Asked } from "../asked.ts";
import { attentionOf, useFleet } from "../fleet.ts";
import { HostsTable } from "../parts/hosts-table.tsx";
import { Answer, Note, Panel, Table, Time } from "../parts/pieces.tsx";
import { Spark } from "../parts/spark.tsx";
import { hrefTo } from "../route.ts";
import { countInClass } from "../status-class.ts";
import { byteCount, percent, several, shortCount } from "../words.ts";

export function OverviewPage(): JSX.Element {
  const fleet = useFleet();
  const domains = useAsked<readonly Domain[]>("/domain/", { topics: ["domains", "sites"] });
  const alerts = useAsked<readonly Alert[]>("/alerts/", {
    topics: ["alerts"],
  });
  return (
    <>
      <h1>Overview</h1>
      <Attention fleet={fleet} alerts={alerts.value ?? []} />
      <Panel title="Domains" beside={<span class="quiet">the last day</span>}>
        <Answer asked={domains}>
          {(found) =>
            found.length === 0 ? (
              <p class="quiet">There is no domain yet.</p>
            ) : (
              <Table
                caption="Domains"
                heads={[
                  "Domain",
                  "Requests",
                  "",
                  "Hit ratio",
                  "Sent",
                  "Saved",
                  "Errors 5xx",
                  "Blocked",
                ]}
              >
                {found.map(({ name }) => (
                  <DomainRow key={name} name={name} />
                ))}
              </Table>
            )
          }
        </Answer>
      </Panel>
      <Panel title="Hosts">
        <Answer asked={fleet}>{({ sites }) => <HostsTable sites={sites} />}</Answer>
      </Panel>
    </>
  );
}

function Attention({
  fleet,
  alerts,
}: {
  readonly fleet: Asked<Fleet>;
  readonly alerts: readonly Alert[];
}): JSX.Element | null {
  if (fleet.value === undefined) return null;
  const found = attentionOf(fleet.value);
  const current = alerts.filter(({ when_ended: ended }) => ended === null);
  if (found.length + current.length === 0) return <Note tone="good">Nothing needs attention.</Note>;
  return (
    <Panel title={`${several(found.length + current.length, "thing")} to look at`}>
      <ul class="plainly attention">
        {current.map(({ id, text, when_began: began }) => (
          <li key={id}>
            <strong class="bad">{text}</strong>{" "}
            <span class="quiet">
              since <Time at={began} isDistance />
            </span>
          </li>
        ))}
        {found.map(({ tone, text, hint }) => (
          <li key={text}>
            <strong class={tone}>{text}</strong>{" "}
            {hint !== undefined && <span class="quiet">{hint}</span>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** A row asks for its numbers when it comes into view: a customer may have hundreds of domains. */
function DomainRow({ name }: { readonly name: string }): JSX.Element {
  const row = useRef<HTMLTableRowElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (row.current === null) return undefined;
    const watch = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
    });
    watch.observe(row.current);
    return () => watch.disconnect();
  }, []);
  const asked = useAsked<Analytics>(
    isSeen ? `${at`/analytics/${name}/`}?by=status&step=hour` : undefined,
  );
  const verdicts = useAsked<Analytics>(
    isSeen ? `${at`/analytics/${name}/`}?by=cache&step=hour` : undefined,
  );
  const { totals, series } = asked.value ?? {};
  const errors = countInClass(totals?.counts, "5");
  const blocked = verdicts.value?.totals.counts?.["blocked"] ?? 0;
  const failure = asked.failure?.message;
  return (
    <tr ref={row}>
      <th scope="row">
        <a href={hrefTo(["d", name])}>{name}</a>
      </th>
      <td class="number">
        {totals === undefined ? (failure ?? "…") : shortCount(totals.requests)}
      </td>
      <td>
        {series !== undefined && (
          <Spark
            values={series.map(({ requests }) => requests)}
            label={`Requests of ${name} by the hour`}
          />
        )}
      </td>
      <td>{totals !== undefined && percent(totals.hits, totals.requests)}</td>
      <td>{totals !== undefined && byteCount(totals.bytes)}</td>
      <td>{totals !== undefined && byteCount(totals.saved_bytes)}</td>
      <td class={errors > 0 ? "bad" : ""}>{totals !== undefined && shortCount(errors)}</td>
      <td>{verdicts.value !== undefined && shortCount(blocked)}</td>
    </tr>
  );
}
