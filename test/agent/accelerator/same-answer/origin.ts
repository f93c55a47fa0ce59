// The origin of all scenes: it tells what it was asked, and confirms what is stored. Nothing else that it says may be stored.

import type { IncomingMessage, ServerResponse } from "node:http";

const statuses: Readonly<Record<string, number>> = { "/b": 500, "/c/d": 404, "/r/t": 503 };

export function answerAsOrigin(request: IncomingMessage, response: ServerResponse): void {
  const { method, url = "", rawHeaders } = request;
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString("latin1");
    // Connections of its pool are the agent's own affair.
    const said = rawHeaders.filter(
      (_, at) => rawHeaders[at - (at % 2)]?.toLowerCase() !== "connection",
    );
    const told = Buffer.from(JSON.stringify({ method, url, said, body }));
    response.sendDate = false;
    const { "if-none-match": tag, "if-modified-since": since } = request.headers;
    if (method === "GET" && (tag !== undefined || since !== undefined)) {
      response.writeHead(304, tag === undefined ? {} : { ETag: tag.replace(/,.*$/, "") }).end();
      return;
    }
    const head = {
      "Cache-Control": "private, no-store",
      "Content-Type": "application/json",
      ETag: '"of the origin"',
      Date: "Mon, 05 May 2031 06:07:00 GMT",
    };
    const status = statuses[url.replace(/\?.*$/, "")] ?? 200;
    // Some are of unstated length.
    if (url.startsWith("/img/")) {
      response.writeHead(status, head);
      response.write(told.subarray(0, 10));
      response.end(told.subarray(10));
    } else response.writeHead(status, { ...head, "Content-Length": told.length }).end(told);
  });
}
