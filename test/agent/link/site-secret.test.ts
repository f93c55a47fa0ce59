// The secret16 that a host signs in with, over rotations, restarts, and operators who write another one into the file.

import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CentralClient } from "../../../src/agent/link/central-client.ts";
import { openSiteSecret } from "../../../src/agent/link/site-secret.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { sealNextSecret } from "../../../src/base/vault-seal.ts";
import { parseName16, parseSecret16, type Secret16 } from "../../../src/core/ids.ts";
import { createSite, rotateSecret } from "../../../src/central/store/journal/sites.ts";
import { siteWithSecret } from "../../../src/central/store/journal/site-secret.ts";
import { startAgentSide } from "../../support/agent-side.ts";
import { tempDir } from "../../support/temp-dir.ts";

const secretOf = (digit: string): Secret16 => {
  const secret = parseSecret16(digit.repeat(32));
  if (secret === undefined) throw new Error("no secret16");
  return secret;
};
const name16 = given(parseName16("0123456789abcdef"));

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("it is of another form");
  return value;
}
const never = new AbortController().signal;
const [a, b, c] = [secretOf("a"), secretOf("b"), secretOf("c")];

function open(stateDir: string, secret16: Secret16) {
  const health = new Health(() => new Date());
  const now = (): Date => new Date("2031-01-01T00:00:00Z");
  const opened = openSiteSecret({ stateDir, name16, secret16, health, log: silentLog(), now });
  return opened.then((secret) => ({
    secret,
    warnings: () => health.list().map(({ code }) => code),
  }));
}
const sealed = (next: Secret16, before: Secret16): string =>
  sealNextSecret(next, { name16, secret16: before });

test("a newer secret outlives restarts, over several rotations, until the file has another one", async () => {
  using dir = tempDir();
  const first = await open(dir.path, a);
  expect([first.secret.value, first.warnings()]).toEqual([a, []]);
  let changes = 0;
  first.secret.onChange(() => (changes += 1));
  await first.secret.replace(sealed(b, a));
  await first.secret.replace(sealed(c, b));
  expect([first.secret.value, changes, first.warnings()]).toEqual([c, 2, ["secret_file_outdated"]]);
  const path = join(dir.path, "secret16.json");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(path, "utf8")).not.toContain(a);

  const second = await open(dir.path, a);
  expect([second.secret.value, second.warnings()]).toEqual([c, ["secret_file_outdated"]]);
  for (const written of [c, b]) {
    const file = readFileSync(path, "utf8");
    const last = await open(dir.path, written);
    expect([last.secret.value, last.warnings(), existsSync(path)]).toEqual([written, [], false]);
    writeFileSync(path, file);
  }
});

test("what was sealed with another secret or for another site changes nothing; nor does a damaged file", async () => {
  using dir = tempDir();
  const { secret } = await open(dir.path, a);
  await expect(secret.replace(sealed(c, b))).rejects.toMatchObject({ code: "SEAL_BROKEN" });
  const other = sealNextSecret(c, { name16: "f".repeat(16), secret16: a });
  await expect(secret.replace(other)).rejects.toMatchObject({ code: "SEAL_BROKEN" });
  await secret.replace(sealed(a, a));
  expect([secret.value, existsSync(join(dir.path, "secret16.json"))]).toEqual([a, false]);
  writeFileSync(join(dir.path, "secret16.json"), '{"format": 1, "secret16": "no');
  expect((await open(dir.path, a)).secret.value).toBe(a);
});

test("a newer secret that central refuses is tried in turn with the file's", async () => {
  using dir = tempDir();
  const { secret } = await open(dir.path, a);
  secret.refused();
  expect(secret.value).toBe(a);
  await secret.replace(sealed(b, a));
  const tried = [1, 2, 3].map(() => {
    secret.refused();
    return secret.value;
  });
  expect(tried).toEqual([a, b, a]);
});

test("with a token comes the new secret, as long as the one before is accepted", async () => {
  await using side = await startAgentSide();
  const site = await side.customers.transact(async (work) =>
    siteWithSecret(work, await createSite(work, { customerId: 1, userId: 1 }, [])),
  );
  const before = given(parseSecret16(site.secret16));
  using dir = tempDir();
  const options = {
    stateDir: dir.path,
    name16: given(parseName16(site.name16)),
    secret16: before,
    health: new Health(() => new Date()),
    log: silentLog(),
    now: () => new Date(),
  };
  const secret = await openSiteSecret(options);
  const centralUrl = new URL(side.url).origin;
  await using client = new CentralClient({
    centralUrl,
    name16: options.name16,
    secret,
    stop: never,
  });
  side.clock.ms = Date.now(); // The client tells the time of this machine.
  await client.signIn();
  expect(secret.value).toBe(before);
  const until = new Date(side.clock.ms + 60_000).toISOString();
  await side.customers.transact(async (work) => rotateSecret(work, site.id, until));
  await client.signIn();
  const rotated = await side.customers.transact(async (work) => siteWithSecret(work, site.id));
  expect(secret.value).toBe(rotated.secret16);
  expect(secret.value).not.toBe(before);

  side.clock.ms += 61_000;
  await client.signIn();
  const late = await openSiteSecret({ ...options, stateDir: join(dir.path, "another") });
  await using stranger = new CentralClient({
    centralUrl,
    name16: options.name16,
    secret: late,
    stop: never,
  });
  await expect(stranger.signIn()).rejects.toMatchObject({ code: "WRONG_SECRET16" });
});
