// The site's own word on headers.

import { expect, test } from "vitest";
import { withSiteHeaders } from "../../../../src/agent/accelerator/doors/answer.ts";
import type { Field } from "../../../../src/core/http/http-fields.ts";

const fields: readonly Field[] = [
  ["Content-Type", "text/html"],
  ["Server", "origin"],
  ["X-Powered-By", "PHP"],
  ["x-powered-by", "ASP"],
];

test.each([
  [{ set: {}, remove: [] }, fields],
  [{ set: {}, remove: ["x-POWERED-by"] }, fields.slice(0, 2)],
  [
    { set: { SERVER: "accel", "X-New": "1" }, remove: [] },
    [fields[0], fields[2], fields[3], ["SERVER", "accel"], ["X-New", "1"]],
  ],
  [
    { set: { Server: "accel" }, remove: ["server", "X-Powered-By"] },
    [fields[0], ["Server", "accel"]],
  ],
] as const)(
  "of %j: what is removed or set goes in any case, then it is set",
  (headers, expected) => {
    expect(withSiteHeaders(fields, headers)).toEqual(expected);
  },
);
