// `/audit/`: who changed what of the customer, the newest first.

import {
  auditLimitDefault,
  auditLimitMax,
  auditParameters,
  auditedChangesShape,
  type AuditedChange,
} from "../../wire/customer/audit.ts";
import { gives } from "../../wire/customer/operation.ts";
import { customerApiPrefix } from "../../wire/customer/shape.ts";
import {
  ownAudit,
  type AuditLine,
  type AuditPlace,
  type OwnAuditQuery,
} from "../store/people/audit.ts";
import { invalid, ok, type ProblemAnswer } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { isProblem } from "./http/path-values.ts";
import { parseQueryTime, queryTimeForm } from "./http/query-time.ts";

const path = "/audit/";

export function auditEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path,
      id: "listAudit",
      needs: { role: "owner", scope: "customer" },
      summary: "List who changed what of the customer, the newest first",
      gives: gives(auditedChangesShape),
      refuses: [400],
      query: auditParameters,
      handle: async ({ actor, query, read }) => {
        const asked = parseAudit(query);
        if (isProblem(asked)) return asked;
        const page = await read(async (work) => ownAudit(work, actor.customerId, asked));
        const lines = page.lines.map((line) => shownLine(line));
        return ok(lines, page.next === undefined ? {} : { link: linkTo(query, page.next) });
      },
    }),
  ];
}

function parseAudit(query: URLSearchParams): OwnAuditQuery | ProblemAnswer {
  const bad = (name: string, message: string): ProblemAnswer =>
    invalid([{ path: `?${name}`, message }]);
  const limit = query.get("limit") ?? String(auditLimitDefault);
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > auditLimitMax)
    return bad("limit", `must be 1 to ${auditLimitMax}`);
  const times: { since?: string; until?: string } = {};
  for (const name of ["since", "until"] as const) {
    const text = query.get(name);
    if (text === null) continue;
    const seconds = parseQueryTime(text);
    if (seconds === undefined) return bad(name, `must be ${queryTimeForm}`);
    times[name] = new Date(seconds * 1_000).toISOString();
  }
  const cursor = query.get("after");
  const after = cursor === null ? undefined : placeOf(cursor);
  if (cursor !== null && after === undefined) return bad("after", "is no cursor of this service");
  return {
    since: times.since,
    until: times.until,
    username: query.get("username") ?? undefined,
    operation: query.get("operation") ?? undefined,
    limit: Number(limit),
    after,
  };
}

// A cursor is the time of a line in milliseconds and its id.

function placeOf(cursor: string): AuditPlace | undefined {
  const [, ms, id] = /^(\d{1,14})-(\d{1,15})$/.exec(cursor) ?? [];
  return ms === undefined || id === undefined
    ? undefined
    : { at: new Date(Number(ms)).toISOString(), id: Number(id) };
}

function linkTo(query: URLSearchParams, { at, id }: AuditPlace): string {
  const onward = new URLSearchParams(query);
  onward.set("after", `${Date.parse(at)}-${id}`);
  return `<${customerApiPrefix}${path}?${onward.toString()}>; rel="next"`;
}

/** Shows a line. Pure. The account of the operator and its address are the operator's own matter. */
function shownLine(line: AuditLine) {
  const { id, at, via, who, user_id: userId, action, operation, ids, change, address } = line;
  const [, method, template] = /^([A-Z]+) (\/.*)$/.exec(action) ?? [];
  const tokenId = ids["by_token_id"];
  return {
    id,
    when: at,
    via,
    username: userId === null || who === "" ? null : who,
    token_id: typeof tokenId === "number" ? tokenId : null,
    operation: operation ?? action,
    ...(method !== undefined && { method }),
    ...(template !== undefined && { path: template }),
    ...(via === "api" && address !== null && { address }),
    detail: { ids, change },
  } satisfies AuditedChange;
}
