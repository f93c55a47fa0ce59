// Saves the requests that a filter finds as a file of lines of JSON, the newest first.

import type { Requests } from "../wire/customer/requests.ts";
import { askPage } from "./api.ts";
import { requestsPath, type Filter } from "./logs-filter.ts";

const pageRecords = 500;
/** As many as a browser holds with ease; for more there is the API. */
const recordsMost = 100_000;

export async function exportRequests(
  domain: string,
  filter: Filter,
  onProgress: (records: number) => void,
): Promise<void> {
  const lines: string[] = [];
  let path: string | undefined = requestsPath(domain, filter, pageRecords);
  while (path !== undefined && lines.length < recordsMost) {
    const { value, next }: { value: Requests; next: string | undefined } =
      await askPage<Requests>(path);
    for (const request of value.requests) lines.push(`${JSON.stringify(request)}\n`);
    onProgress(lines.length);
    path = next;
  }
  const url = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `requests-${domain}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.ndjson`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
