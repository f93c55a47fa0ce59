// The vault on a real disk: what central sealed is opened, kept for a start without central, and told of; what does not fit is refused as a whole.

import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openVault, type Vault } from "../../../src/agent/vault/vault.ts";
import { Health } from "../../../src/base/health.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { CertificateTable } from "../../../src/core/serving/certificate-table.ts";
import type {
  FoundCertificates,
  ReadyCertificates,
} from "../../../src/core/serving/found-certificates.ts";
import { parseSha256 } from "../../../src/core/ids.ts";
import { SealedSite } from "../../support/sealed-site.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { makeAuthority, makeCertificate } from "../../support/x509.ts";

const stop = new AbortController().signal;
const noBlobs = async (): Promise<never> => {
  throw new Error("nothing is fetched");
};

async function open(stateDir: string, site: SealedSite, now = new Date("2031-01-01T00:00:00Z")) {
  const [registry, health] = [new Registry(), new Health(() => now)];
  const { site: credentials } = site;
  const vault = await openVault({
    stateDir,
    site: () => credentials,
    getBlob: noBlobs,
    left: async () => undefined,
    now: () => now,
    registry,
    health,
  });
  return { vault, registry, health };
}

async function prepared(vault: Vault, certificates: unknown[]): Promise<FoundCertificates> {
  return vault.prepare({ certificates } as Parameters<Vault["prepare"]>[0], stop);
}

function ready(found: FoundCertificates): ReadyCertificates {
  if (found.kind !== "ready") throw new Error(JSON.stringify(found));
  return found;
}

/** Names and private keys in the table. */
function served({ table }: ReadyCertificates): readonly (readonly [string, string])[] {
  if (table === undefined) return [];
  const held = new CertificateTable(table);
  return held.certificates.map((one) => [one.names.join(), held.keyOf(one)]);
}

const codes = (health: Health): readonly string[] => health.list().map(({ code }) => code);

test("certificates are opened with their keys, and again at a start, without central", async () => {
  using dir = tempDir();
  const site = new SealedSite();
  site.addKey();
  const authority = makeAuthority();
  const one = authority.issue({ names: ["a.example.com", "*.a.example.com"] });
  const other = makeCertificate({ names: ["b.example.com"], keyType: "ed25519" });
  const { vault } = await open(dir.path, site);
  expect(await vault.takeKeys(site.keysBody())).toEqual([]);
  const states = [site.certificate(one, 1, one.chain), site.certificate(other, 2)];
  const found = ready(await prepared(vault, states));
  const expected = [
    ["a.example.com,*.a.example.com", one.key],
    ["b.example.com", other.key],
  ];
  expect([served(found), vault.lacksKeys]).toEqual([expected, false]);
  expect(found.stored?.count).toBe(2);
  await vault.use(found);

  const again = await open(dir.path, site);
  if (found.stored === null) throw new Error("nothing is stored");
  const restored = ready(await again.vault.restore(found.stored));
  expect(served(restored)).toEqual(expected);
  const table = restored.table && new CertificateTable(restored.table);
  expect(table?.certificates.map((certificate) => table.chainOf(certificate))).toEqual([
    one.chain,
    other.pem,
  ]);
});

test("files are for this user alone, and no private key lies in them as it is", async () => {
  using dir = tempDir();
  const site = new SealedSite();
  site.addKey();
  const leaf = makeCertificate({ names: ["a.example.com"] });
  const { vault } = await open(dir.path, site);
  await vault.takeKeys(site.keysBody());
  await vault.use(ready(await prepared(vault, [site.certificate(leaf)])));
  const directory = join(dir.path, "vault");
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  const names = readdirSync(directory).toSorted();
  expect(names).toEqual([expect.stringMatching(/^certificates-[0-9a-f]{64}\.json$/), "keys.json"]);
  for (const name of names) {
    expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(directory, name), "utf8")).not.toContain(leaf.key.split("\n")[1]);
  }
  expect(JSON.stringify(vault.facts())).not.toContain(leaf.key.split("\n")[1]);
});

test.each([
  ["of another certificate", "has the private key of another certificate"],
  ["that is none", "has a private key that cannot be read"],
  ["sealed for another one", "its private key does not open with key-00112233445566aa-1"],
  ["under another fingerprint", "does not match its fingerprint"],
  ["a chain that is none", "cannot be read"],
])("a private key %s: none of them is taken", async (what, reason) => {
  using dir = tempDir();
  const site = new SealedSite();
  site.addKey();
  const [good, bad, third] = ["a", "b", "c"].map((name) =>
    makeCertificate({ names: [`${name}.example.com`] }),
  );
  if (good === undefined || bad === undefined || third === undefined) throw new Error("three");
  const state = {
    "of another certificate": () => site.certificate({ ...bad, key: third.key }),
    "that is none": () => site.certificate({ ...bad, key: "canary" }),
    "sealed for another one": () => ({
      ...site.certificate(bad),
      sealed_key: site.certificate(third).sealed_key,
    }),
    "under another fingerprint": () => ({ ...site.certificate(bad), chain: third.pem }),
    "a chain that is none": () => ({ ...site.certificate(bad), chain: "canary" }),
  }[what];
  const { vault } = await open(dir.path, site);
  await vault.takeKeys(site.keysBody());
  const found = await prepared(vault, [site.certificate(good), state?.()]);
  expect(found).toEqual({
    kind: "invalid",
    reason: expect.stringMatching(new RegExp(`^the certificate for b\\.example\\.com .*${reason}`)),
  });
  expect(JSON.stringify(found)).not.toContain("canary");
  expect(readdirSync(join(dir.path, "vault"))).toEqual(["keys.json"]);
});

test("what another secret16 sealed is kept and opens at a start with that secret", async () => {
  using dir = tempDir();
  const site = new SealedSite();
  const old = site.secret16;
  site.addKey();
  const leaf = makeCertificate({ names: ["a.example.com"] });
  const before = await open(dir.path, site);
  await before.vault.takeKeys(site.keysBody());
  const first = ready(await prepared(before.vault, [site.certificate(leaf)]));
  await before.vault.use(first);

  // Sealed anew: the key is the same, whatever it is sealed with.
  site.secret16 = "f".repeat(32);
  expect(await before.vault.takeKeys(site.keysBody())).toEqual([]);
  expect(codes(before.health)).not.toContain("vault_locked");
  // A new key: only the new secret opens it.
  const second = site.addKey();
  expect(await before.vault.takeKeys(site.keysBody())).toEqual([second]);
  expect(codes(before.health)).toContain("vault_locked");
  const locked = await prepared(before.vault, [site.certificate(leaf)]);
  if (locked.kind !== "locked") throw new Error(locked.kind);
  expect(locked.reason).toMatch(`${second}, which this host cannot open`);
  await before.vault.use(first, locked);

  site.secret16 = old;
  const still = await open(dir.path, site);
  expect(still.vault.lockedKeys()).toEqual([second]);
  expect((await still.vault.restore(locked.stored)).kind).toBe("locked");
  if (first.stored === null) throw new Error("nothing is stored");
  expect(served(ready(await still.vault.restore(first.stored)))).toEqual([
    ["a.example.com", leaf.key],
  ]);

  site.secret16 = "f".repeat(32);
  const after = await open(dir.path, site);
  expect([after.vault.lockedKeys(), codes(after.health)]).toEqual([[], []]);
  const opened = ready(await after.vault.restore(locked.stored));
  expect(served(opened)).toEqual([["a.example.com", leaf.key]]);
  await after.vault.use(opened);
  expect(readdirSync(join(dir.path, "vault"))).toHaveLength(2);
  // And for good: this host has been given the old secret back.
  site.secret16 = old;
  expect((await open(dir.path, site)).vault.lockedKeys()).toEqual([]);
});

test("a key that was taken away stays while certificates are sealed with it", async () => {
  using dir = tempDir();
  const site = new SealedSite();
  const first = site.addKey();
  const leaf = makeCertificate({ names: ["a.example.com"] });
  const { vault } = await open(dir.path, site);
  await vault.takeKeys(site.keysBody());
  const found = ready(await prepared(vault, [site.certificate(leaf)]));
  await vault.use(found);
  const second = site.addKey();
  await vault.takeKeys(site.keysBody([second]));
  expect(vault.facts()).toMatchObject({ keys: 1 });
  // Killed here: what is in force is served again.
  const again = await open(dir.path, site);
  if (found.stored === null) throw new Error("nothing is stored");
  const restored = ready(await again.vault.restore(found.stored));
  await again.vault.use(restored);
  const keys = (): string => readFileSync(join(dir.path, "vault", "keys.json"), "utf8");
  expect(keys()).toContain(first);
  await again.vault.use(ready(await prepared(again.vault, [site.certificate(leaf)])));
  expect(keys()).not.toContain(first);
  expect(keys()).toContain(second);
});

test("damage is told apart from what is right", async () => {
  using dir = tempDir();
  const site = new SealedSite();
  site.addKey();
  const { vault } = await open(dir.path, site);
  await vault.takeKeys(site.keysBody());
  const leaf = makeCertificate({ names: ["a.example.com"] });
  const { stored } = ready(await prepared(vault, [site.certificate(leaf)]));
  if (stored === null) throw new Error("nothing is stored");
  const path = join(dir.path, "vault", `certificates-${stored.sha256}.json`);
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace("a.example.com", "x.example.com"));
  expect(await vault.restore(stored)).toEqual({ kind: "torn" });
  rmSync(path);
  expect(await vault.restore(stored)).toEqual({ kind: "torn" });
  const none = parseSha256("0".repeat(64));
  expect(await vault.restore({ sha256: none ?? stored.sha256, count: 1 })).toEqual({
    kind: "torn",
  });
  for (const damaged of ["", "{", text, '{"format":2,"keys":[]}']) {
    writeFileSync(join(dir.path, "vault", "keys.json"), damaged);
    expect((await open(dir.path, site)).vault.lacksKeys).toBe(true);
    expect(readdirSync(join(dir.path, "vault"))).not.toContain("keys.json");
  }
  expect(readdirSync(join(dir.path, "vault"))).toContain("keys.json.corrupt");
});

test("what a crash left goes, and forgetting leaves nothing", async () => {
  using dir = tempDir();
  const site = new SealedSite();
  site.addKey();
  const { vault } = await open(dir.path, site);
  await vault.takeKeys(site.keysBody());
  const directory = join(dir.path, "vault");
  writeFileSync(join(directory, "keys.json.0123456789ab.tmp"), "torn");
  writeFileSync(join(directory, "keys.json.corrupt"), "torn");
  const leaf = makeCertificate({ names: ["a.example.com"] });
  await vault.use(ready(await prepared(vault, [site.certificate(leaf)])));
  expect(readdirSync(directory).some((name) => name.endsWith(".tmp"))).toBe(false);
  await vault.forget();
  expect(readdirSync(directory)).toEqual([]);
  expect(vault.facts()).toMatchObject({ keys: 0, certificates: 0 });
  expect((await open(dir.path, site)).vault.lacksKeys).toBe(true);
});

test("expiry is in health, metrics and status, and changes with time alone", async () => {
  using dir = tempDir();
  const site = new SealedSite();
  site.addKey();
  const now = new Date("2031-01-01T00:00:00Z");
  const { vault, health, registry } = await open(dir.path, site, now);
  await vault.takeKeys(site.keysBody());
  const ends = ["2031-01-10T00:00:00Z", "2031-03-01T00:00:00Z", "2030-12-31T00:00:00Z"];
  const states = ends.map((to, no) =>
    site.certificate(makeCertificate({ names: [`h${no}.example.com`], to: new Date(to) }), no + 1),
  );
  const early = makeCertificate({
    names: ["e.example.com"],
    from: new Date("2031-02-01T00:00:00Z"),
  });
  await vault.use(ready(await prepared(vault, [...states, site.certificate(early, 4)])));
  const text = (code: string) => health.list().find((warning) => warning.code === code)?.text;
  const gauges = async (): Promise<readonly number[]> => {
    const metric = await registry.getSingleMetric("accel_agent_certificates")?.get();
    return ["valid", "expiring", "expired", "early"].map(
      (state) => metric?.values.find(({ labels }) => labels["state"] === state)?.value ?? NaN,
    );
  };
  expect(await gauges()).toEqual([1, 1, 1, 1]);
  expect(text("certificate_expired")).toBe(
    "1 certificate expired, visitors are warned: h2.example.com (2030-12-31)",
  );
  expect(text("certificate_expiring")).toBe(
    "1 certificate expires within 14 days: h0.example.com (2031-01-10)",
  );
  const first = registry.getSingleMetric("accel_agent_certificate_first_expiry_timestamp_seconds");
  expect((await first?.get())?.values[0]?.value).toBe(Date.parse("2030-12-31T00:00:00Z") / 1_000);
  expect(vault.facts()).toMatchObject({
    next_to_expire: [
      { names: "h2.example.com", state: "expired" },
      { names: "h0.example.com", state: "expiring" },
      { names: "h1.example.com", state: "valid" },
      { names: "e.example.com", state: "early" },
    ],
  });
  now.setTime(Date.parse("2031-02-20T00:00:00Z"));
  vault.tellExpiry();
  expect(await gauges()).toEqual([1, 1, 2, 0]);
  expect(text("certificate_expired")).toContain("2 certificates expired");
  await vault.use(ready(await prepared(vault, [site.certificate(early, 4)])));
  expect(await gauges()).toEqual([1, 0, 0, 0]);
  expect(codes(health)).toEqual([]);
});
