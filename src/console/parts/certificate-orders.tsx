// The certificates that devloves order: how each order stands, and why one does not go on.

import type { JSX } from "preact";
import type { CertificateOrder } from "../../wire/customer/certificate-order.ts";
import { at } from "../api.ts";
import { useAsked } from "../asked.ts";
import { visibleText } from "../visible-text.ts";
import { Answer, Badge, Panel, Table, Time, type Tone } from "./pieces.tsx";
import { provedEveryMs } from "./vault-state.tsx";

const words: Readonly<
  Record<CertificateOrder["state"], readonly [tone: Tone, text: string, next: string]>
> = {
  issued: ["good", "issued", "renewed"],
  ordering: ["warn", "being ordered", "next"],
  proving: ["warn", "hosts are proved", "looked at again"],
  failed: ["bad", "failed", "tried again"],
};

/** Shows nothing where nothing is ordered. */
export function CertificateOrders(): JSX.Element {
  const asked = useAsked<readonly CertificateOrder[]>(at`/certificate-orders/`, {
    topics: ["certificates", "viewsets"],
    everyMs: provedEveryMs,
  });
  return (
    <Answer asked={asked}>
      {(orders) =>
        orders.length === 0 ? (
          <></>
        ) : (
          <Panel title="Ordered by devloves">
            <Table
              caption="Certificates that devloves order (tls.acme)"
              heads={["Names", "Order", "Next", "Until"]}
            >
              {orders.map((order) => (
                <OrderRow key={order.id} order={order} />
              ))}
            </Table>
          </Panel>
        )
      }
    </Answer>
  );
}

function OrderRow({ order }: { readonly order: CertificateOrder }): JSX.Element {
  const { names, state, error, next_at: nextAt, certificate } = order;
  const [tone, text, next] = words[state];
  return (
    <tr>
      <th scope="row" class="wraps">
        {names.map(visibleText).join(", ")}
      </th>
      <td class="wraps">
        <Badge tone={tone}>{text}</Badge> {error !== null && visibleText(error)}
      </td>
      <td>
        {next} <Time at={nextAt} />
      </td>
      <td>{certificate === null ? "–" : <Time at={certificate.not_after} />}</td>
    </tr>
  );
}
