// Request records for tests: `connection` tells one from another.

import type { RequestRecord } from "../../src/wire/request-log.ts";

export function requestRecord(
  connection: number,
  more: Partial<RequestRecord> = {},
): RequestRecord {
  return {
    connection,
    response_status: 200,
    request_method: "GET",
    uri_path: `/articles/${connection}?page=2`,
    backend_time: 0,
    when: 1_700_000_000 + connection / 1_000,
    authority: "www.example.com",
    domain: "www.example.com",
    client_ip: "192.0.2.1",
    bytes_sent: 1_234,
    duration: 0.004,
    cache: "hit",
    verdict: "allow",
    bot: null,
    user_agent: "Mozilla/5.0 (X11; Linux x86_64)",
    ...more,
  };
}
