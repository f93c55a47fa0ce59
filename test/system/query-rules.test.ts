// A page that was cleared by URL stays gone when earlier rules about queries come back: by an edited devlove, and by one that
// changed while the agent was stopped.

import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 300_000 });

let made = 0;
const origin = createServer((_request, response) => {
  response.setHeader("Cache-Control", "max-age=3600");
  response.end(`page ${++made}`);
});
let edge: Edge;
let devloveFile: string;
let backend: string;

const rules = { ignoring: { query: { ignore: ["utm_*"] } }, telling: {} };

/** `X-Rules` tells which of them are in force. */
function write(name: keyof typeof rules): void {
  const site = {
    backend: { urls: [backend] },
    cache: { default: rules[name] },
    headers: { set: { "X-Rules": name } },
  };
  writeFileSync(devloveFile, JSON.stringify({ domains: { [domain]: site } }));
}

const visit = async (path: string) => {
  const { headers, body } = await edge.visit(path, { host: domain });
  return { rules: headers["x-rules"], body: body.toString() };
};
const inForce = (name: string) =>
  until(`rules ${name}`, async () => (await visit("/other")).rules === name);

beforeAll(async () => {
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  backend = `http://127.0.0.1:${(origin.address() as AddressInfo).port}`;
  edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, backend, "rules");
  await script.enrol();
  devloveFile = join(edge.dir, "devlove.json");
  mkdirSync(join(edge.dir, "views"));
  write("ignoring");
  edge.changeAgentSettings({
    sites: [{ domain, views_dir: join(edge.dir, "views"), devlove_file: devloveFile }],
  });
  await edge.startAgent();
  await script.steps()[0]?.run();
  await inForce("ignoring");
});

afterAll(async () => {
  origin.close();
  await edge[Symbol.asyncDispose]();
});

const url = "/page?utm_source=a";

/** Resolves to the page as it is answered from the cache: a busy index stores it a moment after its first answer. */
const cached = () =>
  until("the page is stored", async () => {
    const { body } = await visit(url);
    return (await visit(url)).body === body && body;
  });

async function clear(): Promise<void> {
  const path = `/clear-accelerator-cache/${domain}/?wait=30`;
  const { body } = await edge.api.post(path, { urls: [url] });
  expect(body).toMatchObject({ deployments: [{ state: "applied" }] });
}

test("a page cleared by URL does not come back with the rules of before", async () => {
  const first = await cached();
  write("telling");
  await inForce("telling");
  await clear();
  write("ignoring");
  await inForce("ignoring");
  expect((await visit(url)).body).not.toBe(first);
});

test("neither does it where the rules changed while the agent was stopped", async () => {
  const first = await cached();
  await edge.agent.kill();
  write("telling");
  await edge.startAgent();
  await inForce("telling");
  await clear();
  await edge.agent.kill();
  write("ignoring");
  await edge.startAgent();
  await inForce("ignoring");
  expect((await visit(url)).body).not.toBe(first);
});
