// The request that a probe makes. Workers ask it of what is staged; what has to come back is planned in main
// (plan-probes.ts), which needs the schema of devlove for that.

import type { Field } from "../http/http-fields.ts";
import { parseTarget } from "../http/request-path.ts";
import type { RequestFacts } from "./request-plan.ts";

/** Returns a plain GET of `/` over HTTPS. */
export function rootRequest(host: string): Pick<RequestFacts, "request" | "target" | "scheme"> {
  const url = "/";
  const fields: readonly Field[] = [["Host", host]];
  return {
    request: { method: "GET", url, httpVersion: "1.1", fields, hasBody: false },
    target: parseTarget(url),
    scheme: "https",
  };
}
