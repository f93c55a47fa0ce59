// What is a wheel, and of which version: rows of good and broken files; no broken one is taken, and none throws.

import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  checkWheel,
  type WheelChecked,
} from "../../../../src/central/store/packages/wheel-file.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { wheel, wheelMembers, wheelName, zip, type Member } from "../../../support/wheels.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

async function check(bytes: Buffer, file = wheelName("1.2.0")): Promise<WheelChecked> {
  using dir = tempDir();
  const path = join(dir.path, "staged");
  writeFileSync(path, bytes);
  return await checkWheel(path, file);
}

const members = wheelMembers("1.2.0");
const without = (name: string): readonly Member[] =>
  members.filter((member) => !member.name.endsWith(name));
const metadata = (content: string, more: Partial<Member> = {}): Buffer =>
  zip([...without("METADATA"), { name: "accel_agent-1.2.0.dist-info/METADATA", content, ...more }]);

/** A wheel whose directory or end record tells something else than the rest of it. */
function misled(change: (bytes: Buffer, directory: number, end: number) => Buffer | void): Buffer {
  const bytes = wheel("1.2.0");
  const end = bytes.length - 22;
  return change(bytes, bytes.readUInt32LE(end + 16), end) ?? bytes;
}

const insert = (bytes: Buffer, at: number, more: Buffer | string): Buffer =>
  Buffer.concat([bytes.subarray(0, at), Buffer.from(more), bytes.subarray(at)]);

/** The records of a Zip64 file (APPNOTE §4.3.14 and §4.3.15), which name the directory of a plain one. */
function zip64Records(bytes: Buffer, directory: number, end: number): Buffer {
  const record = Buffer.alloc(56);
  record.write("PK\u0006\u0006", "latin1");
  record.writeUInt32LE(44, 4);
  for (const at of [24, 32]) record.writeUInt32LE(bytes.readUInt16LE(end + 10), at);
  record.writeUInt32LE(end - directory, 40);
  record.writeUInt32LE(directory, 48);
  const locator = Buffer.alloc(20);
  locator.write("PK\u0006\u0007", "latin1");
  locator.writeUInt32LE(end, 8);
  locator.writeUInt32LE(1, 16);
  return Buffer.concat([record, locator]);
}

const good = "Metadata-Version: 2.1\nName: accel-agent\nVersion: 1.2.0\n";

test.each([
  ["as it should be", wheel("1.2.0"), wheelName("1.2.0")],
  ["with a comment at the end", zip(members, "PK\u0005\u0006 made up"), wheelName("1.2.0")],
  ["stored, not deflated", metadata(good, { method: 0 }), wheelName("1.2.0")],
  ["with line ends of Windows", metadata(good.replaceAll("\n", "\r\n")), wheelName("1.2.0")],
  ["with a version of another spelling in its name", wheel("1.2.0"), wheelName("1.2")],
  ["with a build tag", wheel("1.2.0"), "accel_agent-1.2.0-1-py3-none-any.whl"],
  ["for a platform", wheel("1.2.0"), "Accel_Agent-1.2.0-cp313-cp313-manylinux_2_28_x86_64.whl"],
])("a wheel %s", async (_what, bytes, file) => {
  const checked = await check(bytes, file);
  expect(checked).toMatchObject({ ok: true, version: { key: "1.2" } });
});

test("a local version", async () => {
  const version = "1.2.0+build.7";
  expect(await check(wheel(version), wheelName(version))).toMatchObject({
    ok: true,
    version: { text: version },
  });
});

test.each<readonly [string, Buffer, string, RegExp]>([
  ["no wheel's name", wheel("1.2.0"), "accel_agent.zip", /has no wheel's name/],
  ["a name with a folder", wheel("1.2.0"), `../${wheelName("1.2.0")}`, /has no wheel's name/],
  ["a name without version", wheel("1.2.0"), "accel_agent-py3-none-any.whl", /wheel's name/],
  ["nothing in it", Buffer.alloc(0), wheelName("1.2.0"), /is no ZIP file/],
  ["some text", Buffer.from("#!/bin/sh\n".repeat(9_000)), wheelName("1.2.0"), /is no ZIP file/],
  ["its end missing", wheel("1.2.0").subarray(0, -1), wheelName("1.2.0"), /is no ZIP file/],
  [
    "something before it",
    Buffer.concat([Buffer.from("#!x\n"), wheel("1.2.0")]),
    wheelName("1.2.0"),
    /directory that does not end where it should/,
  ],
  ["no members", zip([]), wheelName("1.2.0"), /has 0 folders \*\.dist-info/],
  [
    "two dist-infos",
    zip([...members, ...wheelMembers("1.2.0", "other")]),
    wheelName("1.2.0"),
    /has 2 folders \*\.dist-info|holds/,
  ],
  ["no METADATA", zip(without("METADATA")), wheelName("1.2.0"), /lacks METADATA/],
  ["no WHEEL", zip(without("WHEEL")), wheelName("1.2.0"), /lacks METADATA, WHEEL or RECORD/],
  ["no RECORD", zip(without("RECORD")), wheelName("1.2.0"), /lacks METADATA, WHEEL or RECORD/],
  [
    "a METADATA without version",
    metadata("Metadata-Version: 2.1\nName: accel-agent\n"),
    wheelName("1.2.0"),
    /without Metadata-Version, Name or Version/,
  ],
  [
    "a METADATA with two versions",
    metadata(`${good}Version: 1.2.1\n`),
    wheelName("1.2.0"),
    /without Metadata-Version/,
  ],
  [
    "a version in the text only",
    metadata("Metadata-Version: 2.1\nName: accel-agent\n\nVersion: 1.2.0\n"),
    wheelName("1.2.0"),
    /without/,
  ],
  [
    "another version than its name",
    wheel("1.2.1"),
    wheelName("1.2.0"),
    /is of accel_agent 1\.2\.1 by its METADATA, but named/,
  ],
  [
    "another distribution than its name",
    wheel("1.2.0"),
    wheelName("1.2.0", "other"),
    /but named other/,
  ],
  [
    "a folder of another version",
    zip(members.map((one) => ({ ...one, name: one.name.replace("1.2.0.dist", "1.2.1.dist") }))),
    wheelName("1.2.0"),
    /which lies in accel_agent-1\.2\.1\.dist-info/,
  ],
  [
    "a damaged METADATA",
    metadata(good, { crc: 7 }),
    wheelName("1.2.0"),
    /METADATA that is damaged/,
  ],
  [
    "a METADATA that unpacks to too much",
    metadata("x".repeat(2 ** 21)),
    wheelName("1.2.0"),
    /is too long/,
  ],
  ["encryption", metadata(good, { flags: 1 }), wheelName("1.2.0"), /is encrypted/],
  [
    "a name that leads out",
    zip([...members, { name: "../../etc/x", content: "" }]),
    wheelName("1.2.0"),
    /leads out/,
  ],
  [
    "an absolute name",
    zip([...members, { name: "/etc/x", content: "" }]),
    wheelName("1.2.0"),
    /leads out/,
  ],
  [
    "a name with a backslash",
    zip([...members, { name: "a\\..\\b", content: "" }]),
    wheelName("1.2.0"),
    /leads out/,
  ],
  [
    "a name with a drive",
    zip([...members, { name: "C:x", content: "" }]),
    wheelName("1.2.0"),
    /leads out/,
  ],
  ["an empty name", zip([...members, { name: "", content: "" }]), wheelName("1.2.0"), /leads out/],
  ["a name twice", zip([...members, ...members]), wheelName("1.2.0"), /twice/],
  [
    "a second volume",
    misled((bytes, _directory, end) => void bytes.writeUInt16LE(4, end + 8)),
    wheelName("1.2.0"),
    /is a part of several/,
  ],
  [
    "an entry that its end does not count",
    misled((bytes, _directory, end) => {
      for (const at of [8, 10]) bytes.writeUInt16LE(4, end + at);
    }),
    wheelName("1.2.0"),
    /has a broken directory/,
  ],
  [
    "bytes between directory and end",
    misled((bytes, _directory, end) => insert(bytes, end, "what is not listed")),
    wheelName("1.2.0"),
    /directory that does not end where it should/,
  ],
  [
    "an entry that lies beyond the file",
    misled((bytes, directory) => void bytes.writeUInt32LE(2 ** 31, directory + 42)),
    wheelName("1.2.0"),
    /names what is not there/,
  ],
  [
    "an entry larger than the file",
    misled((bytes, directory) => void bytes.writeUInt32LE(bytes.length, directory + 20)),
    wheelName("1.2.0"),
    /names what is not there/,
  ],
  [
    "the end of a Zip64 file",
    misled((bytes, directory, end) => {
      const records = zip64Records(bytes, directory, end);
      bytes.fill(0xff, end + 8, end + 20);
      return insert(bytes, end, records);
    }),
    wheelName("1.2.0"),
    /is a Zip64 file/,
  ],
  [
    "an end of each kind, which readers take for two files",
    misled((bytes, directory, end) => insert(bytes, end, zip64Records(bytes, directory, end))),
    wheelName("1.2.0"),
    /directory that does not end where it should/,
  ],
])("a file with %s is refused", async (_what, bytes, file, reason) => {
  const checked = await check(bytes, file);
  expect(checked).toEqual({ ok: false, reason: expect.stringMatching(reason) });
});

test("a directory that is larger than names can make it is not read", async () => {
  using dir = tempDir();
  const path = join(dir.path, "staged");
  const size = 2 ** 24 + 1;
  // The file is all directory, as its end says: blanks that take no room on the disk.
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", "latin1");
  end.writeUInt32LE(size, 12);
  writeFileSync(path, "");
  truncateSync(path, size);
  writeFileSync(path, end, { flag: "a" });
  expect(await checkWheel(path, wheelName("1.2.0"))).toEqual({
    ok: false,
    reason: "has too large a directory",
  });
});

test("a METADATA made to be slow is read in no time", async () => {
  const blanks = " ".repeat(900_000);
  const slow = good.replace("1.2.0\n", `1.2${blanks}.0\n`);
  const beganMs = cpuMs();
  expect(await check(metadata(slow))).toMatchObject({ ok: false });
  expect(cpuMs(beganMs)).toBeLessThan(5_000);
});

test("whatever is changed in a wheel, it is refused with a reason or is still the wheel", async () => {
  const whole = wheel("1.2.0", 50);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
      fc.nat(20),
      async (changes, cut) => {
        const bytes = Buffer.from(whole);
        for (const [at, value] of changes) bytes[at] = value;
        const checked = await check(bytes.subarray(0, bytes.length - cut));
        if (checked.ok) expect(checked.version.key).toBe("1.2");
        else expect(checked.reason).toMatch(/^(?:has|is|lacks|holds) /);
      },
    ),
    { numRuns: 300 },
  );
});
