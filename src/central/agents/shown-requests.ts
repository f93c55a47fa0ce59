// Shows stored request records as `/requests/` answers them: every field that is kept, each under a name that says
// what it is.

import { tellRecord } from "../../core/serving/record-words.ts";
import type { RequestDetail, RequestEntry } from "../../wire/customer/requests.ts";
import type { RequestRecord } from "../../wire/request-log.ts";
import { verdictParts } from "./record-filter.ts";

export function showRequest(record: RequestRecord, id: string, siteId: number): RequestEntry {
  const { uri_path: target, bot, user_agent: agent } = record;
  const mark = target.indexOf("?");
  return {
    request_id: id,
    when: record.when,
    deployment_site_id: siteId,
    connection: record.connection,
    client_address: record.client_ip,
    method: record.request_method,
    authority: record.authority,
    path: mark < 0 ? target : target.slice(0, mark),
    ...(mark >= 0 && { query: target.slice(mark + 1) }),
    status: record.response_status,
    ...(agent !== null && { user_agent: agent }),
    bytes: record.bytes_sent,
    cache: record.cache,
    ...verdictParts(record.verdict),
    ...(bot !== null && { bot }),
    backend_seconds: record.backend_time,
    total_seconds: record.duration,
  };
}

export function showDetail(record: RequestRecord, id: string, siteId: number): RequestDetail {
  const shown = showRequest(record, id, siteId);
  const { verdict, reason } = shown;
  const why = tellRecord({
    verdict,
    reason,
    bot: record.bot,
    clientIp: record.client_ip,
    cache: record.cache,
    status: record.response_status,
    backendSeconds: record.backend_time,
  });
  return { ...shown, why };
}
