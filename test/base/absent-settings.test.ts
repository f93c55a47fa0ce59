// A settings file of the agent that is not there: a host that had joined is told how to get it back, and one that had not how to join. As root, and as another user.

import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { absentSettings, sightOf } from "../../src/base/absent-settings.ts";
import { agentProgram, placeOf, type UnitPlace } from "../../src/base/instance.ts";
import { socketWithoutSettings } from "../../src/cli/control.ts";
import { tempDir } from "../support/temp-dir.ts";

/** Root may look at everything: a test that is run as root looks as nobody does. */
const isRoot = process.getuid?.() === 0;

function asNobody<T>(look: () => T): T {
  if (isRoot) process.seteuid?.(65_534);
  try {
    return look();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

/** A host as the packages and systemd make it: the state directory is a link into a directory that root alone may enter. */
function host(root: string) {
  chmodSync(root, 0o755);
  const [etc, hidden, real] = ["etc", "private", "private/state"].map((name) =>
    join(root, name),
  ) as [string, string, string];
  mkdirSync(etc);
  const config = join(etc, "agent.yaml");
  const stateDir = join(root, "state");
  const secret = { shown: join(root, "shown"), source: join(etc, "secret16") };
  const place: UnitPlace = { ...placeOf(agentProgram, "b"), config, stateDir, secret };
  return {
    place,
    config,
    copy: join(stateDir, "settings.yaml"),
    etc,
    hidden,
    run: (): void => {
      mkdirSync(real, { recursive: true });
      symlinkSync(real, stateDir);
      writeFileSync(join(real, "agent.db"), "");
    },
  };
}

const joining = "`accel-agent join --central URL --instance b`";

test("a file of which the agent kept a copy is to be put back from there, with owner, mode and start", () => {
  using dir = tempDir();
  const { config, copy, place, run } = host(dir.path);
  run();
  writeFileSync(copy, "");
  expect(absentSettings(config, place)).toEqual({
    kind: "gone",
    message: `the settings file ${config} is gone`,
    hint: `Put back what the agent read last, as root: install -D -o root -g root -m 644 ${copy} ${config}; systemctl start accel-agent@b`,
  });
});

test("another user, who does not see the copy, sees by the state directory that the host had joined", () => {
  using dir = tempDir();
  const { config, copy, hidden, place, run } = host(dir.path);
  run();
  writeFileSync(copy, "");
  chmodSync(hidden, 0o700);
  if (!isRoot) chmodSync(hidden, 0o000);
  const absent = asNobody(() => absentSettings(config, place));
  const denied = () => asNobody(() => socketWithoutSettings(config, place));
  const message = `the settings file ${config} is gone: an agent has run here, with the state directory ${place.stateDir}`;
  const hint = "As root: `accel-agent check --instance b` says how to put it back.";
  expect(absent).toEqual({ kind: "gone", message, hint });
  expect(denied).toThrow(
    expect.objectContaining({
      code: "CONTROL_UNREACHABLE",
      message: `this user does not see whether the agent b runs, and ${message}`,
      hint,
    }),
  );
  chmodSync(hidden, 0o700);
});

test("where a user may not look at all, both is said that may be so", () => {
  using dir = tempDir();
  const { config, etc, place } = host(dir.path);
  chmodSync(etc, isRoot ? 0o700 : 0o000);
  const { kind, message, hint } = asNobody(() => absentSettings(config, place));
  chmodSync(etc, 0o700);
  expect(kind).toBe("unseen");
  expect(message).toBe(`this user does not see whether there is a settings file ${config}`);
  expect(hint).toBe(
    `The agent, which has a user of its own, has to enter ${etc}, whose mode is ${isRoot ? "700" : "000"}. As root: chmod 755 ${etc}. Until then give the command as root.`,
  );
});

test("an agent that left no copy has run all the same", () => {
  using dir = tempDir();
  const { config, place, run } = host(dir.path);
  run();
  const { kind, hint } = absentSettings(config, place);
  expect(kind).toBe("gone");
  expect(hint).toMatch(/^Put it back from a backup; /);
  expect(hint).toContain(joining);
});

test("a secret alone is of a host that had joined, or of a join that was broken off", () => {
  using dir = tempDir();
  const { config, place } = host(dir.path);
  writeFileSync(place.secret.source, "");
  const { kind, message, hint } = absentSettings(config, place);
  expect([kind, message]).toEqual([
    "gone",
    `the settings file ${config} is gone, or was never written whole: the secret is there (${place.secret.source})`,
  ]);
  expect(hint).toContain(joining);
});

test("a host without any trace of an agent has not joined; neither has one whose state directory is empty", () => {
  using dir = tempDir();
  const { config, place } = host(dir.path);
  const unjoined = {
    kind: "unjoined",
    message: `there is no settings file ${config}`,
    hint: `This host has not joined a deployment site yet: ${joining} does that, and writes this file.`,
  };
  expect(absentSettings(config, place)).toEqual(unjoined);
  expect(() => socketWithoutSettings(config, place)).toThrow(
    `no agent b runs here, and there is no settings file ${config}`,
  );
  mkdirSync(place.stateDir);
  expect(absentSettings(config, place)).toEqual(unjoined);
});

test("an agent that runs on without its settings file is asked all the same; one that does not run is told of as that", () => {
  using dir = tempDir();
  const { config, copy, place, run } = host(dir.path);
  run();
  writeFileSync(copy, "");
  const socket = join(place.stateDir, "control.sock");
  writeFileSync(socket, "");
  expect(sightOf(socket)).toBe("there");
  expect(socketWithoutSettings(config, place)).toBe(socket);
  rmSync(socket);
  expect(() => socketWithoutSettings(config, place)).toThrow(
    `no agent b runs here, and the settings file ${config} is gone`,
  );
});

test.each([
  ["shpo", "Did you mean --instance shop?"],
  [
    "elsewhere",
    "This host has accel-agent (without --instance), accel-agent@blog (--instance blog), accel-agent@shop (--instance shop).",
  ],
])("of an agent %s that this host does not have, those are told that it has", (name, told) => {
  using dir = tempDir();
  for (const other of ["", "blog", "shop", "gone"])
    mkdirSync(join(dir.path, other), { recursive: true });
  for (const other of ["", "blog", "shop"]) writeFileSync(join(dir.path, other, "agent.yaml"), "");
  const config = join(dir.path, name, "agent.yaml");
  const place = { ...placeOf(agentProgram, name), config };
  expect(absentSettings(config, place)).toEqual({
    kind: "unjoined",
    message: `there is no settings file ${config}`,
    hint: `${told} Another one joins by \`accel-agent join --central URL --instance ${name}\`, which writes this file.`,
  });
});

test("where only agents with a name are, the command without one is told their names", () => {
  using dir = tempDir();
  mkdirSync(join(dir.path, "shop"));
  writeFileSync(join(dir.path, "shop", "agent.yaml"), "");
  const [config, stateDir] = [join(dir.path, "agent.yaml"), join(dir.path, "state")];
  const secret = { shown: join(dir.path, "shown"), source: join(dir.path, "secret16") };
  const place: UnitPlace = { ...placeOf(agentProgram), config, stateDir, secret };
  expect(absentSettings(config, place).hint).toBe(
    "This host has accel-agent@shop (--instance shop). Another one joins by `accel-agent join --central URL`, which writes this file.",
  );
});
