// Which request records a search wants, as pure conditions that can be posted to a thread.

import { parseIp, type IpRange } from "../../core/addresses/ip.ts";
import type { RequestRecord } from "../../wire/request-log.ts";

/** Each condition that is there must hold. */
export type RecordFilter = {
  /** Both ends are included. */
  readonly status?: { readonly least: number; readonly most: number } | undefined;
  readonly method?: string | undefined;
  readonly cache?: string | undefined;
  /** `refused`: `block` or `limit`. */
  readonly verdict?: string | undefined;
  readonly reason?: string | undefined;
  readonly bot?: string | undefined;
  /** What the target as sent, path and query, contains. */
  readonly path?: string | undefined;
  /** What the path as sent is, without its query. */
  readonly path_is?: string | undefined;
  readonly address?: IpRange | undefined;
};

/** Splits what is recorded of a verdict; the reason is empty where nobody was judged. */
export function verdictParts(verdict: string): {
  readonly verdict: string;
  readonly reason: string;
} {
  const blank = verdict.indexOf(" ");
  return blank < 0
    ? { verdict, reason: "" }
    : { verdict: verdict.slice(0, blank), reason: verdict.slice(blank + 1) };
}

export function matches(filter: RecordFilter, record: RequestRecord): boolean {
  const { status, method, cache, bot, path, address } = filter;
  if (status !== undefined) {
    const { response_status: told } = record;
    if (told < status.least || told > status.most) return false;
  }
  if (method !== undefined && record.request_method !== method) return false;
  if (cache !== undefined && record.cache !== cache) return false;
  if (bot !== undefined && record.bot !== bot) return false;
  if (filter.verdict !== undefined || filter.reason !== undefined) {
    const { verdict, reason } = verdictParts(record.verdict);
    if (filter.verdict === "refused" && verdict !== "block" && verdict !== "limit") return false;
    if (filter.verdict !== undefined && ![verdict, "refused"].includes(filter.verdict))
      return false;
    if (filter.reason !== undefined && reason !== filter.reason) return false;
  }
  if (path !== undefined && !record.uri_path.includes(path)) return false;
  const { path_is: pathIs } = filter;
  if (pathIs !== undefined && record.uri_path.split("?", 1)[0] !== pathIs) return false;
  return address === undefined || isWithin(address, record.client_ip);
}

function isWithin({ family, first, last }: IpRange, text: string): boolean {
  const address = parseIp(text);
  return (
    address !== undefined &&
    address.family === family &&
    address.value >= first &&
    address.value <= last
  );
}
