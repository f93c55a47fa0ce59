// The certificates that devloves order: how each order stands, and why one does not go on.

import type { JSX } from "preact";
import type { CertificateOrder } from "../../wire/customer/certificate-order.ts";
import { at, send } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { useMay } from "../session.ts";
import { visibleText } from "../visible-text.ts";
import { Answer, Badge, Button, Panel, RefusalNote, Table, Time, type Tone } from "./pieces.tsx";
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
  const mayWrite = useMay("write");
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
              heads={["Names", "Order", "Next", "Until", ...(mayWrite ? [""] : [])]}
            >
              {orders.map((order) => (
                <OrderRow key={order.id} order={order} mayWrite={mayWrite} onDone={asked.again} />
              ))}
            </Table>
          </Panel>
        )
      }
    </Answer>
  );
}

type RowProps = {
  readonly order: CertificateOrder;
  readonly mayWrite: boolean;
  readonly onDone: () => void;
};

function OrderRow({ order, mayWrite, onDone }: RowProps): JSX.Element {
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
      {mayWrite && <td>{canBeTried(order) && <TryNow order={order} onDone={onDone} />}</td>}
    </tr>
  );
}

/** What rests until its renewal, or is being ordered without trouble, waits for nothing. */
function canBeTried({ state, error }: CertificateOrder): boolean {
  return state === "failed" || (state !== "issued" && error !== null);
}

function TryNow({ order: { id, names }, onDone }: Omit<RowProps, "mayWrite">): JSX.Element {
  const doing = useDoing();
  const tryNow = async (): Promise<void> => {
    await send("POST", at`/certificate-orders/${id}/try/`);
    onDone();
  };
  return (
    <>
      <Button
        disabled={doing.isBusy}
        label={`Try to order the certificate of ${visibleText(names[0] ?? "")} now`}
        onClick={() => void doing.run(tryNow)}
      >
        Try now
      </Button>
      <RefusalNote failure={doing.failure} />
    </>
  );
}
