// What `npm start` suggests, read from its screen and run by a shell as it is printed: it warms, clears, blocks and shows the logs.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePortBase } from "../support/demo.ts";
import { NpmStart } from "../support/demo-processes.ts";
import { startOrigin } from "../support/origin.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const dir = tempDir();
let demo: NpmStart;
beforeAll(async () => {
  demo = await started(join(dir.path, "state"));
}, 400_000);
afterAll(async () => {
  await demo[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

async function started(state: string, more: readonly string[] = []): Promise<NpmStart> {
  const own = new NpmStart(state, ["--port-base", String(await freePortBase()), ...more]);
  await own.ready();
  return own;
}

/** The commands below a suggestion's title: what is indented further, up to the next blank line. */
function suggestion(said: string, title: RegExp): string {
  const lines = said.split("\n");
  const at = lines.findIndex((line) => title.test(line));
  const rest = lines.slice(at + 1);
  const commands = rest.slice(0, rest.indexOf(""));
  if (at < 0 || commands.length === 0) throw new Error(`${title} is not on the screen:\n${said}`);
  return commands.join("\n");
}

/** In a terminal of its own, as a user has it. */
async function pasted(own: NpmStart, title: RegExp): Promise<string> {
  const script = suggestion(own.said, title);
  const { stdout } = await promisify(execFile)("sh", ["-c", script], { cwd: dir.path });
  return stdout;
}

const cleared = (said: string): unknown => JSON.parse(said).deployments;

test("the first two: a page is cached and found, and then cleared", async () => {
  expect(await pasted(demo, /^ {2}1 /)).toMatch(/^cache-status: .*\bhit\b/i);
  const said = cleared(await pasted(demo, /^ {2}2 /));
  expect(said).toMatchObject([{ state: "applied", matched: 1 }]);
  expect(await pasted(demo, /^ {2}1 /)).toMatch(/\bhit\b/);
});

test("the third: a range is blocked by the time that it is answered", async () => {
  const said = await pasted(demo, /^ {2}3 /);
  const at = said.indexOf("HTTP/1.1");
  expect(JSON.parse(said.slice(0, at))).toMatchObject({
    name: "unwelcome",
    ip_addresses: ["203.0.113.0/24"],
    deployments: [{ state: "applied" }],
  });
  expect(said.slice(at)).toMatch(/^HTTP\/1\.1 403 [\s\S]*x-accel-decision/i);
});

test("the fourth: the logs show it", async () => {
  const wanted = ['"response_status":403', '"uri_path":"/generated/page/1.html"'];
  const shown = await until("the page and the block in the logs", async () => {
    const said = await pasted(demo, /^ {2}4 /);
    return wanted.every((part) => said.includes(part)) && said;
  });
  expect(JSON.parse(shown)).toMatchObject({ logs_data: { deployments: [{}] } });
});

test("files over somebody's backend are no matter of the demo's own", () => {
  expect(demo.said).not.toContain("lie over your backend");
});

test("caching can be watched where the screen says", async () => {
  const watch = /caching, watched +(\S+)/.exec(demo.said)?.[1] ?? "";
  const page = await fetch(watch);
  expect(page.status).toBe(200);
  expect(await page.text()).toContain("cache-status");
});

test("in front of an origin of one's own they do the same, and it is called that", async () => {
  await using origin = await startOrigin();
  await using own = await started(join(dir.path, "own"), ["--backend", origin.url]);
  expect(own.said).toMatch(new RegExp(`your backend +${origin.url}`));
  expect(own.said).not.toContain("demo backend");
  expect(own.said).toContain("The demo's own files lie over your backend: /, /watch/");
  expect(await pasted(own, /^ {2}1 /)).toMatch(/^cache-status: .*\bhit\b/i);
  const said = cleared(await pasted(own, /^ {2}2 /));
  expect(said).toMatchObject([{ state: "applied", matched: 1 }]);
}, 400_000);
