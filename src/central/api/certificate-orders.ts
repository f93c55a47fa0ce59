// `/certificate-orders/`: how the certificates stand that central orders, because a devlove says so. They are ordered by devlove alone.

import { certificateOrderShape } from "../../wire/customer/certificate-order.ts";
import { lists } from "../../wire/customer/operation.ts";
import { listCertificateOrders } from "../store/acme/acme-standings.ts";
import { list } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";

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
  ];
}
