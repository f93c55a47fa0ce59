// A host whose inotify watches have run out, for real: a user namespace of its own has as few as the test wants.

import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Told } from "../../support/few-watches-child.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const limited = (watches: number, command: string): readonly string[] => [
  "-Ur",
  "sh",
  "-c",
  `echo ${watches} > /proc/sys/user/max_inotify_watches && ${command}`,
];
const isPossible = spawnSync("unshare", limited(4, "true")).status === 0;
const child = join(import.meta.dirname, "../../support/few-watches-child.ts");

test.skipIf(!isPossible)(
  "a site with more directories than watches is polled, says so, and its changes are told",
  async () => {
    using dir = tempDir();
    const views = join(dir.path, "views");
    for (let i = 0; i < 20; i++) mkdirSync(join(views, `d${i}`), { recursive: true });
    writeFileSync(
      join(dir.path, "devlove.json"),
      JSON.stringify({ domains: { "www.example.com": {} } }),
    );
    const program = spawn(
      "unshare",
      limited(4, `exec '${process.execPath}' '${child}' '${dir.path}'`),
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    let said = "";
    program.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const told = async (first: Told, what = ""): Promise<boolean> =>
      until(`${first} ${what}`, () => said.includes(`${first} ${what}\n`));
    try {
      await told("ready");
      expect(said).toMatch(/^health local_site_polled .*no file watches left \(.*ENOSPC/m);
      writeFileSync(join(views, "d19/page.html"), "x");
      await told("views", "d19/page.html");
      writeFileSync(
        join(dir.path, "devlove.json"),
        JSON.stringify({ domains: { "www.example.com": { compression: false } } }),
      );
      await told("devlove", "www.example.com");
    } finally {
      program.kill("SIGKILL");
    }
  },
  240_000,
);
