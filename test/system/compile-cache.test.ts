// The cache of compiled code that the units name by NODE_COMPILE_CACHE: filled by an orderly stop, and never a reason not to start.

import { existsSync, globSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Edge } from "../support/edge.ts";
import { Program } from "../support/process.ts";

const site = { name16: "0123456789abcdef", secret16: "0123456789abcdef0123456789abcdef" };

/** Files of compiled code, the directory of this Node included. */
const filesIn = (cache: string): readonly string[] =>
  globSync("**/*", { cwd: cache })
    .map((name) => join(cache, name))
    .filter((path) => statSync(path).isFile());

async function serves(edge: Edge): Promise<boolean> {
  return edge.visit("/").then(
    ({ status }) => status > 0,
    () => false,
  );
}

test("compiled code is kept at a stop; damaged, truncated and unwritable caches are started with as if there were none", async () => {
  await using edge = await Edge.prepare();
  edge.writeAgentSettings(site); // Central is away throughout.
  const cache = join(edge.dir, "compile-cache");
  const startAndStop = async (): Promise<void> => {
    const args = ["agent", "run", "--config", join(edge.dir, "agent.yaml")];
    const env = { NODE_COMPILE_CACHE: cache };
    await using agent = await Program.start(args, async () => serves(edge), env);
    expect(await agent.terminate()).toBe(0);
  };

  await startAndStop();
  const kept = filesIn(cache);
  // More than main alone: threads keep theirs.
  expect(kept.length).toBeGreaterThan(1);

  for (const [no, file] of kept.entries()) {
    const bytes = readFileSync(file);
    writeFileSync(file, no % 2 === 0 ? bytes.fill(0xa5, 0) : bytes.subarray(0, bytes.length >> 1));
  }
  await startAndStop();

  rmSync(cache, { recursive: true });
  writeFileSync(cache, "a file is in the way");
  await startAndStop();
  expect(readFileSync(cache, "utf8")).toBe("a file is in the way");
  expect(existsSync(join(edge.dir, "agent", "agent.db"))).toBe(true);
});

test("two agents with one cache start at once and serve", async () => {
  await using one = await Edge.prepare();
  await using other = await Edge.prepare();
  const env = { NODE_COMPILE_CACHE: join(one.dir, "compile-cache") };
  const run = async (edge: Edge): Promise<void> => {
    edge.writeAgentSettings(site);
    const args = ["agent", "run", "--config", join(edge.dir, "agent.yaml")];
    await using agent = await Program.start(args, async () => serves(edge), env);
    expect(await agent.terminate()).toBe(0);
  };
  await Promise.all([run(one), run(other)]);
  await Promise.all([run(one), run(other)]);
});
