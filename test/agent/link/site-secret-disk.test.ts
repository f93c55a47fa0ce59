// A rotation that comes while the disk of the state directory is full, or read-only.

import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSiteSecret } from "../../../src/agent/link/site-secret.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { sealNextSecret } from "../../../src/base/vault-seal.ts";
import { parseName16, parseSecret16, type Name16, type Secret16 } from "../../../src/core/ids.ts";
import { canMountDisks, SmallDisk } from "../../support/small-disk.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const name16 = parseName16("0123456789abcdef") as Name16;
const [a, b, c] = ["a", "b", "c"].map((digit) => parseSecret16(digit.repeat(32)) as Secret16);
const step = test.skipIf(!canMountDisks);

async function open(stateDir: string) {
  const health = new Health(() => new Date());
  const stop = new AbortController();
  const secret = await openSiteSecret({
    stateDir,
    name16,
    secret16: a as Secret16,
    health,
    log: silentLog(),
    now: () => new Date("2031-01-01T00:00:00Z"),
    stop: stop.signal,
  });
  return { secret, stop, warnings: () => health.list().map(({ code }) => code) };
}
const sealed = (next: Secret16 | undefined, before: Secret16 | undefined): string =>
  sealNextSecret(next as Secret16, { name16, secret16: before as Secret16 });

step("a disk without a free byte: the new secret is kept all the same", async () => {
  using dir = tempDir();
  using disk = new SmallDisk("16M");
  disk.mount(join(dir.path, "state"));
  const first = await open(disk.at);
  disk.fill("for nobody");
  await first.secret.replace(sealed(b, a));
  expect([first.secret.value, first.warnings()]).toEqual([b, ["secret_file_outdated"]]);
  const next = await open(disk.at);
  expect(next.secret.value).toBe(b);
  expect(readFileSync(join(disk.at, "secret16.json"), "utf8")).toMatch(/^\{.*\}$/);
});

step(
  "a disk without any room for it: in memory, told, and written when there is room",
  async () => {
    using dir = tempDir();
    using disk = new SmallDisk("16M");
    disk.mount(join(dir.path, "state"));
    const first = await open(disk.at);
    rmSync(join(disk.at, "secret16.room"));
    disk.fill("for nobody");
    await first.secret.replace(sealed(b, a));
    expect([first.secret.value, first.warnings()]).toEqual([b, ["secret_not_kept"]]);
    await first.secret.replace(sealed(c, b));
    expect([first.secret.value, existsSync(join(disk.at, "secret16.json"))]).toEqual([c, false]);
    disk.clean();
    await until("it is written", () => first.warnings().join() === "secret_file_outdated", 60_000);
    const next = await open(disk.at);
    expect([next.secret.value, existsSync(join(disk.at, "secret16.room"))]).toEqual([c, true]);
    first.stop.abort();
  },
);

step("a disk that is read-only: in memory, and told", async () => {
  using dir = tempDir();
  using disk = new SmallDisk("16M");
  disk.mount(join(dir.path, "state"));
  const first = await open(disk.at);
  disk.break();
  await first.secret.replace(sealed(b, a));
  expect([first.secret.value, first.warnings()]).toEqual([b, ["secret_not_kept"]]);
  first.stop.abort();
});
