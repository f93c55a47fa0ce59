// Serves the pages that links in mails lead to. Each request has an id, an address and a line in the log, as
// those of the customer API have.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "../base/log.ts";
import { ClientAddresses } from "../core/http/client-address.ts";
import { visitorAddress, endedFacts, requestIds, statusOf } from "./api/http/request-line.ts";

/** Who asks for a page. */
export type Asker = { readonly address: string; readonly requestId: string };

type Pages = (request: IncomingMessage, response: ServerResponse, asker: Asker) => void;

export type MailPagesOptions = {
  readonly pages: Pages;
  /** Addresses and CIDR ranges whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  readonly randomBytes: (count: number) => Uint8Array;
  readonly now: () => Date;
  readonly log: Log;
};

const pathCharsLogged = 500;

export function createMailPages(
  options: MailPagesOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  const { pages, log, now } = options;
  const clients = new ClientAddresses(options.trustedProxies, "x-forwarded-for");
  const nextRequestId = requestIds(options.randomBytes);
  return (request, response) => {
    const [address, requestId] = [visitorAddress(clients, request), nextRequestId()];
    const startedMs = now().getTime();
    response.setHeader("x-request-id", requestId);
    response.once("close", () => {
      const path = pathTold(request.url ?? "");
      log.info(
        {
          method: request.method,
          path,
          status: statusOf(response),
          ms: now().getTime() - startedMs,
          address,
          ...endedFacts({ request, response, requestId }),
        },
        "request",
      );
    });
    pages(request, response, { address, requestId });
  };
}

/**
 * Returns the path for the log. The token of a link stands in its query, and in the path if a mail program
 * mangled the link.
 */
function pathTold(url: string): string {
  const [path = ""] = url.split(/[?#]/, 1);
  return path.replace(/[\w%=-]{20,}/g, "…").slice(0, pathCharsLogged);
}
