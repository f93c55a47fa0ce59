// The secret16 that a host signs in with, over rotations, restarts, and operators who write another one into the file.

import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CentralClient } from "../../../src/agent/link/central-client.ts";
import { openSiteSecret, secretOfStart } from "../../../src/agent/link/site-secret.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { openNextSecret, sealNextSecret } from "../../../src/base/vault-seal.ts";
import { parseName16, parseSecret16, type Secret16 } from "../../../src/core/ids.ts";
import {
  createSite,
  oldSecretsMax,
  rotateSecret,
} from "../../../src/central/store/journal/sites.ts";
import { siteWithSecret } from "../../../src/central/store/journal/site-secret.ts";
import { startAgentSide } from "../../support/agent-side.ts";
import { nextSecretHeader } from "../../../src/wire/token.ts";
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
  const log = silentLog();
  const opened = openSiteSecret({ stateDir, name16, secret16, health, log, now, stop: never });
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
  const path = join(dir.path, "secret16.json");
  await secret.replace(sealed(b, a));
  const good = readFileSync(path, "utf8");
  for (const text of [
    '{"format": 1, "secret16": "no',
    "",
    good.replace('"format":1', '"format":2'),
    good.replace(name16, "f".repeat(16)),
    good.replace(b, "B".repeat(32)),
  ]) {
    writeFileSync(path, text);
    expect(await secretOfStart({ stateDir: dir.path, name16, secret16: a })).toBe(a);
    expect((await open(dir.path, a)).secret.value).toBe(a);
    // That of a newer release is for it to go on with.
    expect(existsSync(path)).toBe(text.includes('"format":2'));
  }
  writeFileSync(path, good);
  expect(await secretOfStart({ stateDir: dir.path, name16, secret16: a })).toBe(b);
  expect(await secretOfStart({ stateDir: dir.path, name16, secret16: c })).toBe(c);
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
  await secret.replace(sealed(c, a));
  expect(secret.value).toBe(c);
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
    stop: never,
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

test("a host that was away for several rotations gets the newest, until a grace of its own secret or of a later one ends", async () => {
  await using side = await startAgentSide();
  const newSite = async () =>
    side.customers.transact(async (work) =>
      siteWithSecret(work, await createSite(work, { customerId: 1, userId: 1 }, [])),
    );
  const [{ id, name16: name }, other] = [await newSite(), await newSite()];
  // Another site's rotations have nothing to do with it.
  const otherUntil = new Date(side.clock.ms + 86_400_000).toISOString();
  await side.customers.transact(async (work) => rotateSecret(work, other.id, otherUntil));
  const now = async (): Promise<string> =>
    side.customers.transact(async (work) => (await siteWithSecret(work, id)).secret16);
  const rotated = async (graceS: number): Promise<string> => {
    const until = graceS === 0 ? undefined : new Date(side.clock.ms + graceS * 1_000).toISOString();
    await side.customers.transact(async (work) => rotateSecret(work, id, until));
    return now();
  };
  /** The secret that comes with a token; undefined: none comes. */
  const given = async (secret: string, of = name): Promise<string | undefined> => {
    const answer = await fetch(`${side.url}/token`, {
      method: "POST",
      headers: { authorization: `Basic ${btoa(`${of}:${secret}`)}` },
      body: new URLSearchParams({ grant_type: "client_credentials" }),
    });
    if (answer.status !== 200) return `refused: ${answer.status}`;
    const sealedNext = answer.headers.get(nextSecretHeader);
    if (sealedNext === null) return undefined;
    return openNextSecret(sealedNext, { name16: of, secret16: secret });
  };
  const first = await now();
  const second = await rotated(100);
  const third = await rotated(200);
  expect([await given(first), await given(second), await given(third)]).toEqual([
    third,
    third,
    undefined,
  ]);
  side.clock.ms += 100_000;
  expect([await given(first), await given(second)]).toEqual(["refused: 401", third]);
  const fourth = await rotated(10); // A shorter grace ends those before as well.
  expect([await given(second), await given(third)]).toEqual([fourth, fourth]);
  side.clock.ms += 10_000;
  expect([await given(second), await given(third)]).toEqual(["refused: 401", "refused: 401"]);

  const many = [await now()];
  for (let no = 0; no < oldSecretsMax; no++) many.push(await rotated(1_000));
  expect(await given(many[0] ?? "")).toBe(many.at(-1));
  many.push(await rotated(1_000));
  expect([await given(many[0] ?? ""), await given(many[1] ?? "")]).toEqual([
    "refused: 401",
    many.at(-1),
  ]);
  await rotated(0);
  for (const one of many) expect(await given(one)).toBe("refused: 401");
  expect(await given(other.secret16, other.name16)).toMatch(/^[0-9a-f]{32}$/);
  expect(await given(other.secret16)).toMatch(/^refused/);
});
