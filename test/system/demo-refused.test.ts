// `npm start` where it cannot work: one plain sentence, and the option that helps.

import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { freePortBase } from "../support/demo.ts";
import { mainFile, Program } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";

const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());
const canMount = spawnSync("unshare", ["--mount", "true"]).status === 0;

/** What it says, and its exit status. */
async function refused(
  args: readonly string[],
  prefix: readonly string[] = [],
): Promise<{ readonly status: number | null; readonly said: string }> {
  const all = ["agent", "demo", ...args];
  await using demo = await Program.start(all, undefined, {}, 0, mainFile, prefix);
  return { status: await demo.exited(), said: demo.said };
}

const elsewhere = "  `npm start -- --state DIR` uses another directory and creates it if needed.\n";

test.each([
  ["/proc/nb", "nothing can be created there"],
  ["FILE", "a file is in the way"],
  ["FILE/below", "a file is in the way"],
])(
  "--state %s",
  async (where, why) => {
    const file = join(dir.path, "file");
    writeFileSync(file, "");
    const state = where.replace("FILE", file);
    expect(await refused(["--state", state])).toEqual({
      status: 1,
      said: `accel-agent: --state ${state} cannot be used: ${why}\n${elsewhere}`,
    });
  },
  120_000,
);

test.skipIf(!canMount).each([
  ["read-only", "ro", "cannot be used: it lies on a file system that is read-only"],
  ["full", "size=4k,nr_inodes=2", "cannot be used: no room is left there"],
  ["almost full", "size=1m", "1.0 MiB are left there, and the demo needs 64"],
])(
  "--state on a disk that is %s (needs unshare --mount)",
  async (_, options, why) => {
    const disk = join(dir.path, "disk");
    mkdirSync(disk, { recursive: true });
    const mount = `mount -t tmpfs -o ${options} demo ${disk} && exec "$0" "$@"`;
    const { status, said } = await refused(
      ["--state", join(disk, "state")],
      ["unshare", "--mount", "sh", "-c", mount],
    );
    expect(said).toMatch(new RegExp(`^accel-agent: --state \\S+ ?:? ?${why}\n`));
    expect(said.split("\n").slice(1).join("\n")).toBe(elsewhere);
    expect(status).toBe(1);
  },
  120_000,
);

test.each([
  ["central", 0, "central"],
  ["accelerator", 80, "the accelerator"],
  ["backend", 81, "the demo backend"],
  ["metrics", 64, "the agent's status page"],
])(
  "the port of %s is taken",
  async (_, above, user) => {
    const base = await freePortBase();
    const { promise, resolve } = Promise.withResolvers<void>();
    const other = createServer().listen(base + above, "127.0.0.1", resolve);
    await promise;
    const state = join(dir.path, "ports");
    const { status, said } = await refused(["--state", state, "--port-base", String(base)]);
    other.close();
    expect(said).toBe(
      `accel-agent: port ${base + above} is taken by another program: ${user} needs it\n` +
        "  `npm start -- --port-base N` moves all four ports of the demo.\n",
    );
    expect(status).toBe(1);
  },
  120_000,
);

test("of a backend of one's own nothing is listened on", async () => {
  const base = await freePortBase();
  const { promise, resolve } = Promise.withResolvers<void>();
  const own = createServer().listen(base + 81, "127.0.0.1", resolve);
  await promise;
  // Something else is in the way, which shows how far it came.
  const central = createServer().listen(base + 80, "127.0.0.1");
  const backend = ["--backend", `http://127.0.0.1:${base + 81}`];
  const state = join(dir.path, "own");
  const { said } = await refused(["--state", state, "--port-base", String(base), ...backend]);
  own.close();
  central.close();
  expect(said).toContain(`port ${base + 80} is taken`);
}, 120_000);
