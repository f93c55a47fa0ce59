// Wrong input: each with a clear error, and an exit code or status.

import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { parse, stringify } from "yaml";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { freePorts } from "../support/free-ports.ts";
import { startOrigin, type Origin } from "../support/origin.ts";
import { answers200, Program } from "../support/process.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 180_000, hookTimeout: 300_000 }); // Each starts commands as processes.

let edge: Edge;
let origin: Origin;

beforeAll(async () => {
  origin = await startOrigin();
  edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "wrong");
  await script.enrol();
  await edge.startAgent();
  for (const { run } of script.steps().slice(0, 2)) await run();
});

afterAll(async () => {
  await edge[Symbol.asyncDispose]();
  await origin[Symbol.asyncDispose]();
});

type Settings = Record<string, unknown>;

function variant(name: string, change: (settings: Settings) => void): string {
  const settings = parse(readFileSync(join(edge.dir, "agent.yaml"), "utf8")) as Settings;
  change(settings);
  const path = join(edge.dir, `${name}.yaml`);
  writeFileSync(path, stringify(settings));
  return path;
}

async function ends(args: readonly string[]): Promise<{ code: number | null; said: string }> {
  await using program = await Program.start(args);
  return { code: await program.exited(), said: program.said };
}

test("YAML that is none: line and reason, exit 2", async () => {
  const path = join(edge.dir, "bad.yaml");
  writeFileSync(path, "central_url: http://127.0.0.1:1\nname16: [unclosed\n");
  const { code, said } = await ends(["agent", "check", "--config", path]);
  expect(code).toBe(2);
  expect(said).toMatch(/bad\.yaml:\d+:/);
});

test("unknown keys are named with the nearest known one: exit 2 at check, told where a program runs with the others", async () => {
  const path = variant("unknown", (settings) =>
    Object.assign(settings, { cache: { disk_mx: "1GiB" } }),
  );
  const checked = await ends(["agent", "check", "--config", path]);
  expect(checked.code).toBe(2);
  expect(checked.said).toContain("cache.disk_mx unknown key; did you mean cache.disk_max?");
  const judged = await ends(["agent", "check", "--reload", "--config", path]);
  expect(judged.code).toBe(0);
  expect(judged.said).toContain("did you mean cache.disk_max?; it is not used");
});

test("a settings file that is not there, exit 2", async () => {
  const { code, said } = await ends([
    "central",
    "check",
    "--config",
    join(edge.dir, "nowhere.yaml"),
  ]);
  expect(code).toBe(2);
  expect(said).toContain("nowhere.yaml");
});

test("a secret's file that holds no secret does not show what it holds", async () => {
  writeFileSync(join(edge.dir, "not-a-secret"), "hunter2hunter2", { mode: 0o600 });
  const path = variant("secret", (settings) =>
    Object.assign(settings, { secret16_file: join(edge.dir, "not-a-secret") }),
  );
  const { code, said } = await ends(["agent", "check", "--config", path]);
  expect(code).toBe(2);
  expect(said).toContain("not-a-secret");
  expect(said).not.toContain("hunter2");
});

test("a second agent on the same state directory is refused, exit 1", async () => {
  const { code, said } = await ends(["agent", "run", "--config", join(edge.dir, "agent.yaml")]);
  expect(code).toBe(1);
  expect(said).toContain("in use by another process");
});

test("a taken port is named, exit 1, and no visitor is stolen", async () => {
  const path = variant("port", (settings) => {
    settings["state_dir"] = join(edge.dir, "second");
  });
  const { code, said } = await ends(["agent", "run", "--config", path]);
  expect(code).toBe(1);
  expect(said).toContain(`${edge.ports.visitors} is in use`);
  const [port = 0] = await freePorts(1);
  const other = createServer().listen(port, "127.0.0.1");
  const central = join(edge.dir, "taken-central.yaml");
  writeFileSync(
    central,
    stringify({
      listen: `127.0.0.1:${port}`,
      base_url: "http://127.0.0.1:1",
      state_dir: join(edge.dir, "central-2"),
    }),
  );
  const refused = await ends(["central", "serve", "--config", central]);
  other.close();
  expect(refused.code).toBe(1);
  expect(refused.said).toContain(`${port} is in use`);
});

test("a state directory that cannot be written, exit 1", async () => {
  const file = join(edge.dir, "a-file");
  writeFileSync(file, "");
  const path = variant("state", (settings) =>
    Object.assign(settings, { state_dir: join(file, "below") }),
  );
  const { code, said } = await ends(["agent", "run", "--config", path]);
  expect(code).toBe(1);
  expect(said).toContain("state directory");
});

test("a state directory that even root may not make, exit 1", async () => {
  const path = variant("kernel", (settings) =>
    Object.assign(settings, { state_dir: "/sys/accel-agent" }),
  );
  const { code, said } = await ends(["agent", "run", "--config", path]);
  expect(code).toBe(1);
  expect(said).toContain("/sys/accel-agent cannot be used");
});

test("a wrong secret and a central that is not there: the agent runs, and says so", async () => {
  const [visitors = 0, metrics = 0, nobody = 0] = await freePorts(3);
  writeFileSync(join(edge.dir, "wrong-secret"), "0".repeat(32), { mode: 0o600 });
  const base = {
    accelerator: { listen: `127.0.0.1:${visitors}`, workers: 1 },
    metrics: { listen: `127.0.0.1:${metrics}` },
  };
  const rows = [
    {
      change: { secret16_file: join(edge.dir, "wrong-secret"), state_dir: join(edge.dir, "third") },
      code: /wrong_secret/,
    },
    {
      change: { central_url: `http://127.0.0.1:${nobody}`, state_dir: join(edge.dir, "fourth") },
      code: /central_unreachable/,
    },
  ];
  for (const [i, { change, code }] of rows.entries()) {
    const path = variant(`link-${i}`, (settings) => Object.assign(settings, base, change));
    await using agent = await Program.start(["agent", "run", "--config", path], () =>
      answers200(`http://127.0.0.1:${metrics}/healthz`),
    );
    await until(
      "the warning",
      async () => {
        await using status = await Program.start(["agent", "status", "--config", path, "--json"]);
        await status.exited();
        return code.test(status.said.toLowerCase());
      },
      // An agent that never reached central says so after half a minute.
      120_000,
    );
    expect(await agent.terminate()).toBe(0);
  }
}, 500_000);

test("unknown commands and options: exit 2 with the nearest", async () => {
  const unknown = await ends(["agent", "statsu"]);
  expect(unknown).toMatchObject({ code: 2 });
  expect(unknown.said).toContain("did you mean status");
  expect(await ends(["agent", "status", "--jsno"])).toMatchObject({ code: 2 });
});

test("malformed JSON, unknown fields, unknown domains and oversize bodies at the API", async () => {
  const { api, ports } = edge;
  const url = `http://127.0.0.1:${ports.central}/presentation-api/v1/domain/`;
  const headers = { authorization: `Token ${api.token}`, "content-type": "application/json" };
  const malformed = await fetch(url, { method: "POST", headers, body: '{"name": ' });
  expect(malformed.status).toBe(400);
  expect(malformed.headers.get("content-type")).toContain("application/problem+json");
  expect(await api.post("/domain/", { nmae: "x.example" })).toMatchObject({ status: 400 });
  expect(await api.get("/domain/unknown.example/")).toMatchObject({ status: 404 });
  expect(
    await api.post("/clear-accelerator-cache/unknown.example/", { url_path_patterns: ["a"] }),
  ).toMatchObject({ status: 404 });
  const oversize = await fetch(url, {
    method: "POST",
    headers,
    body: JSON.stringify({ name: "x".repeat(3 * 2 ** 20) }),
  });
  expect(oversize.status).toBe(413);
  expect((await fetch(url, { headers: { authorization: "Token nonsense" } })).status).toBe(401);
});

test("an authority that nobody serves is 421 and names it; oversize request bodies are 413", async () => {
  const answer = await edge.visit("/", { host: "unknown.example" });
  expect(answer.status).toBe(421);
  expect(answer.body.toString()).toContain("unknown.example");
  expect(
    (
      await edge
        .visit("/page/x", {
          host: domain,
          method: "POST",
          headers: { "content-length": String(2 ** 40) },
        })
        .catch(() => ({ status: 413 }))
    ).status,
  ).toBe(413);
});
