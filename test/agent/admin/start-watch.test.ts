// The warnings of files that the next start would miss, of a settings file, a secret and an authority that a test removes and breaks.

import { chmodSync, mkdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exposedSource, secretFault, StartWatch } from "../../../src/agent/admin/start-watch.ts";
import { agentFields } from "../../../src/agent/settings/fields.ts";
import { Health } from "../../../src/base/health.ts";
import { agentProgram, placeOf } from "../../../src/base/instance.ts";
import { loadSettings } from "../../../src/base/settings-file.ts";
import { tempDir } from "../../support/temp-dir.ts";

const secret = "0123456789abcdef".repeat(2);

function rig(dir: string) {
  const [config, secretFile, authority] = ["agent.yaml", "secret16", "ca.pem"].map((name) =>
    join(dir, name),
  ) as [string, string, string];
  const good = `central_url: https://central.example.com\nname16: 0123456789abcdef\nstate_dir: ${dir}\nsecret16_file: ${secretFile}\ncentral_ca_file: ${authority}\n`;
  const write = (text = good): void => writeFileSync(config, text);
  write();
  writeFileSync(secretFile, secret);
  writeFileSync(authority, "");
  const health = new Health(() => new Date(0));
  const logged: string[] = [];
  const tell = (_: object, text: string): void => void logged.push(text);
  const settings = loadSettings(agentFields, config);
  const watch = new StartWatch({
    config,
    settings,
    health,
    log: { warn: tell, info: tell } as never,
  });
  const warned = (): readonly string[] => {
    watch.look();
    return health.list().map(({ code, severity, text, hint }) => {
      expect([code, severity]).toEqual(["restart_would_fail", "warning"]);
      return `${text.replace("the agent serves on, and a restart would fail: ", "")} → ${hint}`;
    });
  };
  return { config, secretFile, authority, good, write, logged, watch, health, warned };
}

test("where all files are as they were, nothing is warned of", () => {
  using dir = tempDir();
  const { logged, warned } = rig(dir.path);
  expect(warned()).toEqual([]);
  expect(logged).toEqual([]);
});

test("a value that a restart would refuse is told by file, line and key; text that is no YAML, too; and no longer when it is right again", () => {
  using dir = tempDir();
  const { config, good, logged, warned, write } = rig(dir.path);
  write(`${good}log_level: loud\n`);
  expect(warned()).toEqual([
    expect.stringMatching(
      new RegExp(`is not valid: ${config}:6: log_level must be one of .* found "loud" → Correct `),
    ),
  ]);
  warned();
  expect(logged).toHaveLength(1);
  write(`${good}spool: [\n`);
  expect(warned()).toEqual([expect.stringContaining(`${config}:`)]);
  const wrong = Array.from({ length: 9 }, (_, at) => `{domain: a${at}.example}`);
  write(
    `${good}log_level: loud\nsites: [${wrong.join(", ")}]\nspool: {max: much}\ncache: {disk_max: much}\n`,
  );
  expect(warned()).toEqual([expect.stringMatching(/; and \d+ more → /)]);
  write(`${good}log_level: ${"x".repeat(5_000)}\n`);
  expect(warned()[0]?.length).toBeLessThan(1_200);
  write();
  expect(warned()).toEqual([]);
  // Each reason is another line, and one that stays is none.
  expect(new Set(logged).size).toBe(logged.length);
  expect(logged).toEqual([...Array.from({ length: 4 }, () => expect.any(String)), "settled"]);
});

test("a key that nobody knows keeps no start from succeeding", () => {
  using dir = tempDir();
  const { good, warned, write } = rig(dir.path);
  write(`${good}accelerater: {}\n`);
  expect(warned()).toEqual([]);
});

test("a settings file that is gone is told, and that it is back", () => {
  using dir = tempDir();
  const { config, warned, write } = rig(dir.path);
  rmSync(config);
  expect(warned()).toEqual([expect.stringContaining(config)]);
  expect(warned()).toHaveLength(1);
  write();
  expect(warned()).toEqual([]);
});

test("a secret and an authority are those that the file names now: gone, and not whole", () => {
  using dir = tempDir();
  const { authority, good, secretFile, warned, write } = rig(dir.path);
  rmSync(authority);
  writeFileSync(secretFile, secret.slice(1));
  expect(warned().toSorted()).toEqual([
    expect.stringMatching(new RegExp(`^${secretFile} must hold 32 .* it holds 31 characters → `)),
    expect.stringMatching(/^central_ca_file cannot be read: ENOENT.* → Put .* back/),
  ]);
  const other = join(dir.path, "other");
  writeFileSync(other, secret);
  write(
    good.replace(/secret16_file.*/, `secret16_file: ${other}`).replace(/central_ca_file.*\n/, ""),
  );
  expect(warned()).toEqual([]);
});

test.skipIf(process.getuid?.() !== 0)(
  "an authority in a directory that the agent may not enter: that is named, with what opens it",
  () => {
    using dir = tempDir();
    chmodSync(dir.path, 0o755);
    const { good, warned, write } = rig(dir.path);
    const closed = join(dir.path, "closed");
    mkdirSync(closed, { mode: 0o700 });
    const authority = join(closed, "ca.pem");
    writeFileSync(authority, "");
    write(good.replace(/central_ca_file.*/, `central_ca_file: ${authority}`));
    chmodSync(join(dir.path, "secret16"), 0o644);
    process.seteuid?.(65_534);
    try {
      expect(warned()).toEqual([
        `central_ca_file cannot be read: EACCES: permission denied, open '${authority}' → The agent, which has a user of its own, has to enter ${closed}, whose mode is 700. As root: chmod 755 ${closed}.`,
      ]);
    } finally {
      process.seteuid?.(0);
    }
  },
);

test("a file is read again where it has changed, and not where it has not", () => {
  using dir = tempDir();
  const { config, good, warned, write } = rig(dir.path);
  const text = `${good}log_level: info\n`;
  write(text);
  expect(warned()).toEqual([]);
  const { mtime, size } = statSync(config);
  write(text.replace("info", "loud"));
  utimesSync(config, mtime, mtime);
  expect(statSync(config).size).toBe(size);
  expect(warned()).toHaveLength(1);
});

test("of the file from which systemd takes the secret everybody sees whether it is there, and how long it is", () => {
  using dir = tempDir();
  const [shown, source] = [join(dir.path, "shown"), join(dir.path, "source")];
  const place = { ...placeOf(agentProgram), secret: { shown, source } };
  writeFileSync(shown, secret);
  expect(secretFault(shown, place)?.message).toMatch(
    /source is gone; the agent runs with the copy/,
  );
  writeFileSync(source, "");
  expect(secretFault(shown, place)?.message).toMatch(/source must hold 32 .*, and has 0 bytes$/);
  writeFileSync(source, `${secret}\n`);
  expect(secretFault(shown, place)).toBeUndefined();
});

test("of the file from which systemd takes the secret it is told that others can read it, and of no other", () => {
  using dir = tempDir();
  const [shown, source] = [join(dir.path, "shown"), join(dir.path, "source")];
  const place = { ...placeOf(agentProgram), secret: { shown, source } };
  writeFileSync(source, secret, { mode: 0o600 });
  expect(exposedSource(shown, place)).toBeUndefined();
  chmodSync(source, 0o644);
  expect(exposedSource(shown, place)).toEqual({
    message: `${source} can be read by other users (mode 644)`,
    hint: `chmod 600 ${source}; if somebody may have read it, rotate the secret (docs/operations/central.md, a secret in wrong hands)`,
  });
  expect(exposedSource(source, place)).toBeUndefined();
  rmSync(source);
  expect(exposedSource(shown, place)).toBeUndefined();
});
