// A directory of settings as `mkdir` makes it with the umask 077: the agent's own user may not enter it. Each command that looks at the settings as root says so, and `join` before a
// code is used.

import { expect, test } from "vitest";
import { withOwnEtc } from "../support/own-etc.ts";
import { canMountDisks } from "../support/small-disk.ts";

const mending = "As root: chmod 755 /etc/accel-agent/shop";
/** Who does not see the secret has it closed first: only the directory may have kept it from others. */
const closing =
  "As root: chmod 600 /etc/accel-agent/shop/secret16; chmod 755 /etc/accel-agent/shop";
const settings = [
  "central_url: http://127.0.0.1:1",
  "name16: 0123456789abcdef",
  "secret16_file: /etc/accel-agent/shop/secret16",
].join("\n");

/** Runs lines of a shell where root alone may enter the directory of the settings of the instance `shop`. */
const withClosedDirectory = (...lines: readonly string[]) =>
  withOwnEtc(
    "umask 077",
    "mkdir -m 755 /etc/accel-agent",
    "mkdir /etc/accel-agent/shop",
    `printf %s '${"f".repeat(32)}' > /etc/accel-agent/shop/secret16`,
    `printf %s '${settings}' > /etc/accel-agent/shop/agent.yaml`,
    "chmod 644 /etc/accel-agent/shop/agent.yaml",
    ...lines,
  );

test.skipIf(!canMountDisks)("check names the directory (needs unshare --mount)", () => {
  const { status, err } = withClosedDirectory('"$@" check --instance shop');
  expect(err).toContain(
    "it may not enter /etc/accel-agent/shop, whose mode is 700. A reload fails",
  );
  expect(err).toContain(`${mending}. There is nothing secret in the settings file.`);
  expect(status).toBe(2);
});

test.skipIf(!canMountDisks)(
  "a secret that only the directory kept from others is closed first (needs unshare --mount)",
  () => {
    const { err } = withClosedDirectory(
      "chmod 644 /etc/accel-agent/shop/secret16",
      '"$@" check --instance shop',
    );
    expect(err).toContain(`${closing}. There is nothing secret in the settings file.`);
  },
);

test.skipIf(!canMountDisks)(
  "who may not enter it, as the agent, is told the directory (needs unshare --mount)",
  () => {
    const asNobody =
      "process.setgroups([]); process.setgid(65534); process.setuid(65534); process.argv.splice(1, 1); await import(process.argv[1]);";
    const { status, err } = withClosedDirectory(
      `p=$1; shift; exec "$p" --input-type=module -e '${asNobody}' x "$@" check --instance shop`,
    );
    expect(err).toContain("has to enter /etc/accel-agent/shop, whose mode is 700.");
    expect(err).toContain(`${closing}. Until then a command that reads it is given as root.`);
    expect(status).toBe(2);
  },
);

test.skipIf(!canMountDisks)(
  "join says it before a code is used, and changes nothing (needs unshare --mount)",
  () => {
    const { status, out, err } = withClosedDirectory(
      "rm /etc/accel-agent/shop/secret16",
      '"$@" join --instance shop --central http://127.0.0.1:1 && exit 9; code=$?',
      "ls /etc/accel-agent/shop; exit $code",
    );
    expect(err).toContain("nothing was changed and no code was used");
    expect(err).toContain("it may not enter /etc/accel-agent/shop, whose mode is 700");
    expect(err).toContain(`${mending}; then join again`);
    expect([status, out]).toEqual([2, "agent.yaml\n"]);
  },
);
