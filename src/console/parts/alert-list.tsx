// Alerts: those that go on, and those that ended lately.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Alert } from "../../wire/customer/alert.ts";
import { withQuery } from "../api.ts";
import { useAsked } from "../asked.ts";
import { hrefTo } from "../route.ts";
import { visibleText } from "../visible-text.ts";
import { seconds } from "../words.ts";
import { Answer, Badge, Choice, Panel, Table, Time } from "./pieces.tsx";

/** Central keeps alerts for 90 days. */
const spans = [
  ["7", "a week"],
  ["30", "30 days"],
  ["89", "89 days"],
] as const;

type AlertSpan = (typeof spans)[number][0];

export function AlertList(): JSX.Element {
  const [days, setDays] = useState<AlertSpan>("7");
  const since = useMemo(() => Math.floor(Date.now() / 1_000) - Number(days) * 86_400, [days]);
  const asked = useAsked<readonly Alert[]>(withQuery("/alerts/", { since }), {
    topics: ["alerts"],
  });
  return (
    <Panel
      title="Alerts"
      beside={<Choice label="Of" value={days} options={spans} onChange={setDays} />}
    >
      <Answer asked={asked}>
        {(found) =>
          found.length === 0 ? (
            <p class="quiet">There was none.</p>
          ) : (
            <Table caption="Alerts" heads={["", "What", "Domain", "Began", "Lasted"]}>
              {found.map((alert) => (
                <AlertRow key={alert.id} alert={alert} />
              ))}
            </Table>
          )
        }
      </Answer>
    </Panel>
  );
}

function AlertRow({ alert }: { readonly alert: Alert }): JSX.Element {
  const { text, domain, when_began: began, when_ended: ended } = alert;
  return (
    <tr>
      <td>
        <Badge tone={ended === null ? "bad" : "plain"}>{ended === null ? "goes on" : "over"}</Badge>
      </td>
      <th scope="row" class="wraps">
        {visibleText(text)}
      </th>
      <td>{domain !== null && <a href={hrefTo(["d", domain])}>{domain}</a>}</td>
      <td>
        <Time at={began} />
      </td>
      <td>
        {ended === null ? "–" : seconds(Math.round((Date.parse(ended) - Date.parse(began)) / 1e3))}
      </td>
    </tr>
  );
}
