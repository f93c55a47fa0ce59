// `/certificate-orders/`: how the certificates stand that central orders, because a devlove says so. They are ordered by devlove alone; one that waits
// may be tried before its time.

import {
  certificateOrderShape,
  type CertificateOrder,
} from "../../wire/customer/certificate-order.ts";
import { gives, lists } from "../../wire/customer/operation.ts";
import { tryOrderNow } from "../store/acme/acme-orders.ts";
import { certificateOrder, listCertificateOrders } from "../store/acme/acme-standings.ts";
import { conflict, list, notFound, ok, tooMany } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { idOf, shownId } from "./http/path-values.ts";

export function certificateOrderEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/certificate-orders/",
      id: "listCertificateOrders",
      needs: { role: "read", scope: "domain" },
      summary: "List the certificates that are ordered by `tls.acme`, and how each order stands",
      gives: lists(certificateOrderShape),
      handle: async ({ actor, read }) =>
        list(async (range) => read(async (work) => listCertificateOrders(work, actor, range))),
    }),
    forUsers({
      method: "POST",
      path: "/certificate-orders/:order_id/try/",
      id: "tryCertificateOrder",
      needs: { role: "write", scope: "domain" },
      summary: "Have an order that failed, or waits for hosts, tried now, not at `next_at`",
      gives: gives(certificateOrderShape),
      refuses: [404, 409, 429],
      handle: async ({ actor, param, change }) =>
        change(async (work) => {
          const id = idOf(param("order_id"));
          const before = await certificateOrder(work, actor, id);
          if (before === undefined)
            return notFound(`certificate order ${shownId(param("order_id"))}`);
          work.concerned.add(before.domain);
          const verdict = await tryOrderNow(work, id);
          if (verdict?.kind === "rests")
            return conflict(
              `certificate order ${id} waits for nothing that could be tried: it is ${before.state}, and goes on at ${before.next_at}`,
            );
          if (verdict?.kind === "later")
            return tooMany(
              `${whyLater(before)}: it may be tried from ${new Date(verdict.fromMs).toISOString()} on`,
              verdict.fromMs - Date.parse(work.at),
            );
          return ok((await certificateOrder(work, actor, id)) ?? before);
        }),
    }),
  ];
}

function whyLater({ id, state }: CertificateOrder): string {
  return state === "proving"
    ? `central looked a moment ago whether the hosts of certificate order ${id} answer`
    : `certificate order ${id} cannot be tried yet, for its directory limits requests, and counts failures`;
}
