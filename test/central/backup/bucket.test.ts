// A backup where blobs and packages lie in a bucket: it holds the store, says where they are, and what is restored finds them there.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Command } from "../../../src/base/command.ts";
import { backupCommand, restoreCommand } from "../../../src/central/main.ts";
import { sha256Of } from "../../../src/core/ids.ts";
import { run as runCommand } from "../../cli/command-rig.ts";
import { bucketName } from "../../support/bucket-rig.ts";
import { newSite, settingsOf, start } from "../../support/central-whole.ts";
import { connectAgent } from "../../support/fake-agent.ts";
import { objectsYaml } from "../../support/objects-central.ts";
import { startS3Server } from "../../support/s3-server.ts";
import { tempDir } from "../../support/temp-dir.ts";

test("it is made while central runs, proved, and restored; what was stored before is there", async () => {
  using dir = tempDir();
  await using server = await startS3Server(bucketName);
  const stateDir = join(dir.path, "state");
  mkdirSync(stateDir);
  const yaml = objectsYaml(dir.path, server.port);
  const config = join(dir.path, "central.yaml");
  writeFileSync(config, `state_dir: ${stateDir}\n${yaml}`);
  const run = async (command: Command, ...args: readonly string[]): Promise<string> =>
    runCommand(command, [...args, "--config", config]);
  const backup = join(dir.path, "backup");
  const path = `/blobs/${sha256Of(Buffer.from("before"))}`;
  const settings = settingsOf(stateDir, yaml);
  const holder = { name16: "", secret16: "" };
  {
    await using central = await start(settings);
    Object.assign(holder, await newSite(central.url));
    const agent = await connectAgent(central.agents, holder.name16, holder.secret16);
    expect((await agent.call(path, { method: "PUT", body: "before" })).status).toBe(204);
    expect(await run(backupCommand, backup, "--with-key")).toMatch(
      /blobs and packages are in the bucket and NOT in the backup/,
    );
  }
  expect(await run(restoreCommand, backup, "--drill")).toMatch(
    /Blobs and packages are in the bucket, which was not looked at/,
  );
  rmSync(stateDir, { recursive: true });
  mkdirSync(stateDir);
  expect(JSON.parse(await run(restoreCommand, backup, "--json"))).toMatchObject({
    objects_in_bucket: true,
    blobs_lost_before: 0,
  });
  await expect(start(settingsOf(stateDir))).rejects.toMatchObject({ code: "OBJECTS_MISPLACED" });
  await using central = await start(settings);
  const agent = await connectAgent(central.agents, holder.name16, holder.secret16);
  expect(await (await agent.call(path)).text()).toBe("before");
});
