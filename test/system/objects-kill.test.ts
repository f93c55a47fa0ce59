// Central killed while uploads are on their way into its bucket: afterwards every row has its object, every object its row or a note, and every upload succeeds.

import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { Limiter } from "../../src/base/limiter.ts";
import { openStore } from "../../src/central/store/engine/database.ts";
import { sha256Of } from "../../src/core/ids.ts";
import { bucketName, prefix } from "../support/bucket-rig.ts";
import { newSite } from "../support/central-whole.ts";
import { connectAgent } from "../support/fake-agent.ts";
import { freePorts } from "../support/free-ports.ts";
import { objectsYaml } from "../support/objects-central.ts";
import { answers200, Program } from "../support/process.ts";
import { passing, startS3Faults } from "../support/s3-faults.ts";
import { startS3Server } from "../support/s3-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 300_000 });

async function setUp() {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  const server = stack.use(await startS3Server(bucketName));
  const faults = stack.use(await startS3Faults(server.port));
  const stateDir = join(dir, "state");
  mkdirSync(stateDir);
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const config = join(dir, "central.yaml");
  const yaml = objectsYaml(dir, faults.port);
  writeFileSync(config, `listen: 127.0.0.1:${port}\nstate_dir: ${stateDir}\n${yaml}`);
  const program = stack.use(
    await Program.start(["central", "serve", "--config", config], async () =>
      answers200(`${url}/readyz`),
    ),
  );
  const { name16, secret16 } = await newSite(url);
  const connect = async () => connectAgent(`${url}/agent-api/v1`, name16, secret16);
  /** Of the stopped central: rows without their object, and objects that nothing names. */
  const found = async () => {
    await using store = await openStore(join(stateDir, "central.db"), () => new Date());
    const rows = await store.selectFrom("blobs").select(["sha256", "object_key"]).execute();
    const notes = await store.selectFrom("loose_objects").select("key").execute();
    const known = new Set([...rows.map((row) => row.object_key), ...notes.map(({ key }) => key)]);
    return {
      rows: rows.length,
      notes: notes.length,
      bare: rows.filter(({ sha256, object_key: key }) => {
        const object = server.objects.get(`${prefix}${key}`);
        return object === undefined || sha256Of(object) !== sha256;
      }),
      unknown: [...server.objects.keys()].filter((key) => !known.has(key.slice(prefix.length))),
    };
  };
  const owned = stack.move();
  return {
    server,
    faults,
    program,
    connect,
    found,
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

test("kill -9 between an object and its row", async () => {
  await using rig = await setUp();
  const bytes = randomBytes(50_000);
  const path = `/blobs/${sha256Of(bytes)}`;
  const agent = await rig.connect();
  rig.faults.choose = (method) => (method === "PUT" ? { kind: "held" } : passing);
  const cut = agent.call(path, { method: "PUT", body: bytes }).catch(() => undefined);
  await until("the object is there", () => rig.server.objects.size === 1);
  await rig.program.kill();
  await cut;
  expect(await rig.found()).toEqual({ rows: 0, notes: 1, bare: [], unknown: [] });
  rig.faults.choose = () => passing;
  await rig.program.restart();
  const again = await rig.connect();
  expect((await again.call(path)).status).toBe(404);
  expect((await again.call(path, { method: "PUT", body: bytes })).status).toBe(204);
  expect(Buffer.from(await (await again.call(path)).arrayBuffer()).equals(bytes)).toBe(true);
  await rig.program.terminate();
  expect(await rig.found()).toEqual({ rows: 1, notes: 1, bare: [], unknown: [] });
});

test("kill -9 in the middle of an import, again and again", async () => {
  await using rig = await setUp();
  const files = Array.from({ length: 120 }, (_, no) => Buffer.from(`file ${no}\n`.repeat(no + 1)));
  const digests = files.map(sha256Of);
  for (const killedAfter of [5, 30, 30, undefined]) {
    const agent = await rig.connect();
    const lacking = await agent.call("/blobs/missing", {
      method: "POST",
      body: JSON.stringify({ sha256: digests }),
    });
    const { missing } = (await lacking.json()) as { readonly missing: readonly string[] };
    const wanted = files.filter((bytes) => missing.includes(sha256Of(bytes)));
    let puts = 0;
    const isTime = Promise.withResolvers<void>();
    rig.faults.choose = (method) => {
      if (method === "PUT" && ++puts === killedAfter) isTime.resolve();
      return passing;
    };
    const limiter = new Limiter(8); // As agents do; a site has 16 at most.
    const uploading = Promise.all(
      wanted.map(async (bytes) =>
        limiter.run(async () => {
          const upload = agent.call(`/blobs/${sha256Of(bytes)}`, { method: "PUT", body: bytes });
          return upload.then(
            ({ status }) => status,
            () => "cut",
          );
        }),
      ),
    );
    if (killedAfter === undefined) {
      expect(new Set(await uploading)).toEqual(new Set([204]));
      break;
    }
    await isTime.promise;
    await rig.program.kill();
    expect(await uploading).toContain("cut");
    expect(await rig.found()).toMatchObject({ bare: [], unknown: [] });
    await rig.program.restart();
  }
  await rig.program.terminate();
  expect(await rig.found()).toMatchObject({ rows: files.length, bare: [], unknown: [] });
});
