// A content management system asks one accelerator to clear a page; the other has it cleared by central.

import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { AgentsOfOneSite, domain, readPage } from "../support/agents-of-one-site.ts";
import { until } from "../support/until.ts";

const page = 1;

/** By a socket: node's client knows no BAN either. */
async function send(
  port: number,
  method: string,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = `${method} /page/${page} HTTP/1.1\r\nhost: ${domain}\r\n${fields.join("")}connection: close\r\n\r\n`;
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.setEncoding("latin1").on("data", (said: string) => (answer += said));
  socket.write(text);
  await once(socket, "close");
  return answer;
}

test("a purge at one accelerator reaches the other", { timeout: 400_000 }, async () => {
  await using site = await AgentsOfOneSite.start(2, 2, "node:1 x");
  const [first, other] = site.agents;
  if (first === undefined || other === undefined) throw new Error("two agents were to serve");
  const read = async (): Promise<readonly number[]> =>
    Promise.all([readPage(first, page), readPage(other, page)]);
  const rows = [
    { method: "PURGE", userAgent: "WordPress/6.4; https://www.example.com", headers: {} },
    { method: "BAN", userAgent: "GuzzleHttp/7", headers: { "cache-tags": "node:1" } },
    { method: "PURGE", userAgent: "GuzzleHttp/7", headers: { xkey: "x" } },
  ];
  for (const { method, userAgent, headers } of rows) {
    const before = await read();
    site.origin.change(page);
    expect(await read()).toEqual(before);
    const purged = await send(first.port, method, { ...headers, "user-agent": userAgent });
    expect(purged).toMatch(/^HTTP\/1\.1 200 /);
    expect(purged).toContain('"matched":1');
    const now = site.origin.of(page);
    expect(await readPage(first, page)).toBe(now);
    await until("the other is told", async () => (await readPage(other, page)) === now, 60_000);
  }
  const refused = await send(first.port, "BAN", { "cache-tags": "node:.*" });
  expect(refused).toMatch(/^HTTP\/1\.1 400 /);
});
