// The first page: what needs attention, the domains with their last day, and the hosts.

import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Alert } from "../../wire/customer/alert.ts";
import type { Analytics } from "../../wire/customer/analytics.ts";
import type { Domain } from "../../wire/customer/domain.ts";
import type { Fleet } from "../../wire/customer/fleet.ts";
import { at, withQuery } from "../api.ts";
import { useAsked, type Asked } from "../asked.ts";
import { attentionOf, lastWordsMs, type LinkStanding, useFleet, useStanding } from "../fleet.ts";
import { useIsLive, useLost } from "../live.ts";
import { useNow } from "../now.ts";
import { HostsTable } from "../parts/hosts-table.tsx";
import { Answer, Note, Panel, Table, TextField, Time } from "../parts/pieces.tsx";
import { Spark } from "../parts/spark.tsx";
import { failingOf, fallOf, recentWindow } from "../recent-fall.ts";
import { hrefTo } from "../route.ts";
import { countInClass } from "../status-class.ts";
import { byteCount, percent, several, shortCount } from "../words.ts";

/** More are looked for by name. */
const domainsAtAGlance = 12;
/** So many are looked after even where their rows are not in view. */
const askedUnseen = 30;

export function OverviewPage(): JSX.Element {
  const fleet = useFleet();
  const standing = useStanding(fleet);
  const domains = useAsked<readonly Domain[]>("/domain/", { topics: ["domains", "sites"] });
  const alerts = useAsked<readonly Alert[]>("/alerts/", {
    topics: ["alerts"],
  });
  const [falls, setFalls] = useState<Falls>({});
  const [sought, setSought] = useState("");
  const tell = useCallback(
    (name: string, text: string | undefined) =>
      setFalls((before) => (before[name] === text ? before : { ...before, [name]: text })),
    [],
  );
  return (
    <>
      <h1>Overview</h1>
      <Attention
        fleet={fleet}
        standing={standing}
        alerts={alerts}
        falls={falls}
        isPartly={(domains.value?.length ?? 0) > askedUnseen}
      />
      <Panel title="Domains" beside={<span class="quiet">the last day</span>}>
        {(domains.value?.length ?? 0) > domainsAtAGlance && (
          <TextField label="Find a domain" type="search" value={sought} onInput={setSought} />
        )}
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
                  "Hit ratio",
                  "Errors 5xx",
                  "Blocked",
                  "Sent",
                  "Saved",
                  "",
                ]}
              >
                {found.map(({ name }) => (
                  <DomainRow
                    key={name}
                    name={name}
                    isHidden={!name.includes(sought.trim().toLowerCase())}
                    isAskedUnseen={found.length <= askedUnseen}
                    tell={tell}
                  />
                ))}
              </Table>
            )
          }
        </Answer>
      </Panel>
      <Panel title="Hosts">
        <Answer asked={fleet}>
          {({ sites }) => <HostsTable sites={sites} standing={standing} />}
        </Answer>
      </Panel>
    </>
  );
}

/** By domain: what is told of how much its cache answers. */
type Falls = Readonly<Record<string, string | undefined>>;

function Attention({
  fleet,
  standing,
  alerts,
  falls,
  isPartly,
}: {
  readonly fleet: Asked<Fleet>;
  readonly standing: LinkStanding;
  readonly alerts: Asked<readonly Alert[]>;
  readonly falls: Falls;
  /** There are so many domains that not all are looked after. */
  readonly isPartly: boolean;
}): JSX.Element | null {
  const isLive = useIsLive();
  const isLost = useLost() !== undefined;
  const { again } = fleet;
  // Whether central is there at all is known at once then.
  const wasLive = useRef(isLive);
  useEffect(() => {
    const isCut = wasLive.current && !isLive;
    wasLive.current = isLive;
    if (!isCut) return undefined;
    again();
    // What is answered until then are a central's last words.
    const timer = setTimeout(again, lastWordsMs + 500);
    return () => clearTimeout(timer);
  }, [isLive, again]);
  if (fleet.value === undefined) return null;
  const failure = fleet.failure ?? alerts.failure;
  if (failure !== undefined)
    return <Note tone="bad">What stands here may be old: {failure.message}.</Note>;
  if (!standing.isKnown)
    return <Note tone="warn">How the hosts stand is not known at the moment.</Note>;
  const found = attentionOf(fleet.value, standing);
  const current = (alerts.value ?? []).filter(({ when_ended: ended }) => ended === null);
  const fallen = Object.entries(falls).filter(([, text]) => text !== undefined);
  const all = found.length + current.length + fallen.length;
  // The line above says that nothing may be known.
  if (all === 0 && isLost) return null;
  if (all === 0)
    return (
      <Note tone="good">
        Nothing needs attention.
        {isPartly && " Caches and failures of domains further down are looked at once they show."}
      </Note>
    );
  return (
    <Panel title={`${several(all, "thing")} to look at`}>
      <ul class="plainly attention">
        {fallen.map(([name, text]) => (
          <li key={name}>
            <strong class="warn">
              {name}: {text}.
            </strong>{" "}
            <a href={hrefTo(["d", name, "traffic"], { span: "1h" })}>See when</a>
          </li>
        ))}
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
function DomainRow({
  name,
  isHidden,
  isAskedUnseen,
  tell,
}: {
  readonly name: string;
  /** Another one is looked for; what is told of this one stays. */
  readonly isHidden: boolean;
  readonly isAskedUnseen: boolean;
  /** Takes what is to be told of the cache; undefined: nothing. */
  readonly tell: (name: string, text: string | undefined) => void;
}): JSX.Element {
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
    isSeen || isAskedUnseen ? `${at`/analytics/${name}/`}?by=cache&step=hour` : undefined,
  );
  const nextMinute = useNow(60_000);
  const hours = verdicts.value?.series;
  const recent = useAsked<Analytics>(
    hours === undefined
      ? undefined
      : withQuery(at`/analytics/${name}/`, {
          by: "cache",
          step: "minute",
          ...recentWindow(nextMinute, hours),
        }),
    { keepsOld: true },
  );
  const minutes = recent.value?.series;
  const fall = hours === undefined || minutes === undefined ? undefined : fallOf(hours, minutes);
  const failing = failingOf(asked.value?.series ?? []);
  const told = [fall, failing].filter((text) => text !== undefined).join("; ");
  useEffect(() => tell(name, told === "" ? undefined : told), [name, told, tell]);
  useEffect(() => () => tell(name, undefined), [name, tell]);
  const { totals, series } = asked.value ?? {};
  const errors = countInClass(totals?.counts, "5");
  const blocked = verdicts.value?.totals.counts?.["blocked"] ?? 0;
  const failure = asked.failure?.message;
  return (
    <tr ref={row} hidden={isHidden}>
      <th scope="row" class="wraps">
        <a href={hrefTo(["d", name])}>
          {name.split(/(?<=\.)/).map((label) => (
            <>
              {label}
              <wbr />
            </>
          ))}
        </a>
      </th>
      <td class="number">
        {totals === undefined ? (failure ?? "…") : shortCount(totals.requests)}
      </td>
      <td>{totals !== undefined && percent(totals.hits, totals.requests)}</td>
      <td class={errors > 0 ? "bad" : ""}>{totals !== undefined && shortCount(errors)}</td>
      <td>{verdicts.value !== undefined && shortCount(blocked)}</td>
      <td>{totals !== undefined && byteCount(totals.bytes)}</td>
      <td>{totals !== undefined && byteCount(totals.saved_bytes)}</td>
      <td>
        {series !== undefined && (
          <Spark
            values={series.map(({ requests }) => requests)}
            label={`Requests of ${name} by the hour`}
          />
        )}
      </td>
    </tr>
  );
}
