// `accel-central clear` between the real programs, as docs/clear-cache.md tells it: its commands, run by a shell, print what stands below them. Two
// deployments; the agent of one is stopped, is named as missing, and proves the clear when it is back.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { mainFile, node } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const document = readFileSync(join(import.meta.dirname, "../../docs/clear-cache.md"), "utf8");
const section = document.split("\n## From a shell\n")[1]?.split("\n## ")[0] ?? "";
const blocks = [...section.matchAll(/^```(sh|text)\n([\s\S]*?)^```$/gm)].map(
  ([, language = "", text = ""]) => ({ language, text }),
);
const [preparing = "", ...commands] = blocks
  .filter(({ language }) => language === "sh")
  .map(({ text }) => text);
const answers = blocks.filter(({ language }) => language === "text").map(({ text }) => text);

const stack = new AsyncDisposableStack();
let first: Edge;
let second: Edge;
let dir: string;

beforeAll(async () => {
  const origin = stack.use(await startOrigin());
  [first, second] = [stack.use(await Edge.prepare()), stack.use(await Edge.prepare())];
  await first.startCentral();
  const script = new CustomerScript(first, origin.url, "shell");
  await script.enrol();
  const { body } = await first.api.post("/deployment-site/", { tags: "test" });
  const central_url = `http://127.0.0.1:${first.ports.central}`;
  second.writeAgentSettings(body as { name16: string; secret16: string }, { central_url });
  await first.startAgent();
  await second.startAgent();
  const link = { name: domain, link_to_deployment_sites_with_tags: "test" };
  expect((await first.api.post("/domain/", link)).status).toBe(201);
  await script.steps()[1]?.run();

  dir = stack.use(tempDir()).path;
  writeFileSync(join(dir, "token"), `${first.api.token}\n`, { mode: 0o600 });
  const program = join(dir, "accel-central");
  writeFileSync(program, `#!/bin/sh\nexec '${node}' '${mainFile}' central "$@"\n`);
  chmodSync(program, 0o755);
}, 300_000);
afterAll(async () => stack.disposeAsync());

type Ended = { readonly code: number; readonly said: string };

/** What a terminal would show, and the exit status. */
async function shell(command: string, clearId = ""): Promise<Ended> {
  const script = `exec 2>&1\n${preparing}${command}`;
  const child = spawn("bash", ["-c", script], {
    cwd: dir,
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      PATH: `${dir}:${process.env["PATH"]}`,
      CENTRAL: `http://127.0.0.1:${first.ports.central}`,
      CLEAR: clearId,
    },
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = await once(child, "close");
  return { code: Number(code), said };
}

/** The document's text, its … open, and in which unit a time is told; columns are as wide as what stands in them. */
function told(text: string): RegExp {
  const words = text.trim().split(/\s+/);
  const open = words.map((word) =>
    word === "ms" ? "m?s" : RegExp.escape(word).replaceAll("…", String.raw`\S+`),
  );
  return new RegExp(String.raw`^${open.join(String.raw`\s+`)}\s*$`);
}

async function cached(edge: Edge, page: string): Promise<void> {
  await until(`${page} is cached`, async () => {
    const { headers } = await edge.visit(page, { host: domain });
    return String(headers["cache-status"]).includes("hit");
  });
}

test("the examples: a dry run, a proof that is whole, an agent that is missing, and comes back", async () => {
  expect([commands.length, answers.length]).toEqual([4, 4]);
  const [dryRun = "", clear = "", partial = "", later = ""] = commands;
  for (const edge of [first, second]) await cached(edge, "/page/one");
  await cached(second, "/page/two");
  const dry = await shell(dryRun);
  expect(dry.said).toMatch(told(answers[0] ?? ""));
  expect(dry.code).toBe(0);
  await cached(first, "/page/one"); // Nothing was cleared.

  const whole = await shell(clear);
  expect(whole.said).toMatch(told(answers[1] ?? ""));
  expect(whole.code).toBe(0);

  await cached(first, "/page/one");
  await cached(second, "/page/one");
  await second.agent.terminate();
  const missing = await shell(partial);
  expect(missing.said).toMatch(told(answers[2] ?? ""));
  expect(missing.code).toBe(3);
  const [, clearId = ""] = /^clear (\w+) /.exec(missing.said) ?? [];

  await second.agent.restart();
  const back = await shell(later, clearId);
  expect(back.said).toMatch(told(answers[3] ?? ""));
  expect(back.code).toBe(0);
}, 300_000);
