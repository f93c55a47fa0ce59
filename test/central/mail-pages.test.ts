// Each page of a mail's link is a line in the log, without the token.

import { randomBytes } from "node:crypto";
import pino from "pino";
import { expect, test } from "vitest";
import { listenHttp } from "../../src/base/http-listener.ts";
import { createMailPages, type Asker } from "../../src/central/mail-pages.ts";
import { until } from "../support/until.ts";

test("a request of a page is told as those of the API are, its token in no form", async () => {
  await using stack = new AsyncDisposableStack();
  const lines: Record<string, unknown>[] = [];
  const askers: Asker[] = [];
  const handler = createMailPages({
    pages: (_request, response, asker) => {
      askers.push(asker);
      response.writeHead(404, { "content-length": 4 }).end("none");
    },
    trustedProxies: ["127.0.0.1"],
    randomBytes,
    now: () => new Date(),
    log: pino({ level: "info" }, { write: (text) => void lines.push(Object(JSON.parse(text))) }),
  });
  const { port } = stack.use(await listenHttp(handler, { host: "127.0.0.1", port: 0 }));
  const token = "kq3-secretsecretsecretsecretsecret_secret99";
  const ids: (string | null)[] = [];
  for (const path of [
    `/mail/recover?token=${token}`,
    `/mail/recover/${token}/`,
    `/mail/x%3D${token}`,
  ]) {
    const headers = { "x-forwarded-for": "203.0.113.9" };
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
    ids.push(answer.headers.get("x-request-id"));
  }
  await until("all are told", () => lines.length === 3);
  expect(lines).toMatchObject([
    { method: "GET", path: "/mail/recover", status: 404, address: "203.0.113.9", bytes_out: 4 },
    { path: "/mail/recover/…/" },
    { path: expect.stringContaining("/mail/") },
  ]);
  expect(lines.map((line) => [line["msg"], line["request_id"]])).toEqual(
    ids.map((id) => ["request", id]),
  );
  expect(askers.map(({ requestId }) => requestId)).toEqual(ids);
  expect(JSON.stringify(lines)).not.toContain("secret");
});
