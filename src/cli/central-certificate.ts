// `accel-central certificate`: the certificates that devloves order, from a shell, through the customer API.

import { readArgs, type Command } from "../base/command.ts";
import { createCustomerClient } from "../client/customer-client.ts";
import { AccelError } from "../core/faults.ts";
import type { CertificateOrder } from "../wire/customer/certificate-order.ts";
import { apiAccess, apiOptions, apiUsage, toldToCaller } from "./customer-api.ts";
import { idGiven } from "./operator.ts";
import { plain, textTable, type Row } from "./text.ts";

const answerWithinMs = 30_000;

export const certificateCommand: Command = {
  summary:
    "Lists the certificates that devloves order (tls.acme), and has an order that failed or waits for hosts tried now. Uses the customer API, from any host.",
  usage: [
    "accel-central certificate orders",
    "accel-central certificate try ID",
    "",
    apiUsage,
    "",
    "try asks central for it and does not wait: orders tells what comes of it, and --json of try has the order as it stood before.",
    "The limits of directories hold: what was refused is tried again two minutes later at the earliest, after the third time each half hour.",
    "docs/certificates.md says what each error means.",
  ].join("\n"),
  async run({ args, env, out }) {
    const { values, positionals } = readArgs(args, apiOptions, 2);
    const [verb, one] = positionals;
    const id = verb === "try" ? idGiven("certificate try", one) : undefined;
    if (id === undefined && (verb !== "orders" || one !== undefined))
      throw new AccelError("USAGE", "certificate takes orders, or try and the ID of an order");
    const access = apiAccess(values, env);
    await using client = createCustomerClient({ ...access, timeoutMs: answerWithinMs });
    try {
      if (id === undefined) {
        const orders = await client.certificateOrders();
        out(values.json === true ? jsonText(orders) : ordersText(orders));
      } else {
        const order = await client.tryCertificateOrder(id);
        out(values.json === true ? jsonText(order) : triedText(order));
      }
    } catch (error) {
      throw toldToCaller(error, access);
    }
  },
};

const jsonText = (answer: unknown): string => `${JSON.stringify(answer, undefined, 2)}\n`;

/** The error is left out: it is of the look before. */
function triedText({ id, domain, state, attempts }: CertificateOrder): string {
  return [
    `order ${id} of ${plain(domain)} is tried now: central takes it up within seconds.`,
    `\`accel-central certificate orders\` tells what comes of it. Until then it shows how the order stood before: ${state}, ${attempts} ${attempts === 1 ? "attempt" : "attempts"}.`,
    "",
  ].join("\n");
}

const columns = ["id", "domain", "state", "attempts", "names", "next_at", "until", "error"];

function ordersText(orders: readonly CertificateOrder[]): string {
  return textTable(orders.map(rowOf), columns, "no devlove orders certificates");
}

function rowOf(order: CertificateOrder): Row {
  const { id, domain, state, attempts, names, next_at, certificate, error } = order;
  const until = certificate?.not_after ?? null;
  return { id, domain, state, attempts, names: names.join(" "), next_at, until, error };
}
