// A unit's settings file that has ports only, as it is written before a second agent of a host joins: no command says that something is gone that never was.

import { expect, test } from "vitest";
import { withOwnEtc } from "../support/own-etc.ts";
import { canMountDisks } from "../support/small-disk.ts";

test.skipIf(!canMountDisks)(
  "status and check say that this host has not joined, and how it joins (needs unshare --mount)",
  () => {
    const { err, status } = withOwnEtc(
      "mkdir -p /etc/accel-agent/shop",
      "echo 'metrics: { listen: 127.0.0.1:9465 }' > /etc/accel-agent/shop/agent.yaml",
      'for command in status check; do "$@" $command --instance shop && exit 9; done',
      "exit 7",
    );
    expect(status).toBe(7);
    expect(err).toContain(
      "no agent shop runs here, and /etc/accel-agent/shop/agent.yaml names no central",
    );
    const joining =
      "This host has not joined a deployment site yet: `accel-agent join --central URL --instance shop` does that, and writes central_url and name16.";
    expect(err.split(joining)).toHaveLength(3);
    expect(err).not.toContain("is gone");
  },
);

test.skipIf(!canMountDisks)(
  "an instance whose file names no state directory has its own, and not that of the plain agent (needs unshare --mount)",
  () => {
    const { err, out, status } = withOwnEtc(
      "mkdir -p /etc/accel-agent/shop",
      "cd /etc/accel-agent/shop",
      "printf '%s\\n' 'central_url: http://127.0.0.1:1' 'name16: 0123456789abcdef' 'secret16_file: /etc/accel-agent/shop/secret16' > agent.yaml",
      "printf 0123456789abcdef0123456789abcdef > secret16",
      "chmod 600 secret16",
      'if "$@" status --instance shop; then exit 9; fi',
      '"$@" doctor --instance shop || exit 7',
    );
    expect(status).toBe(7);
    expect(err).toContain("/var/lib/accel-agent-shop/control.sock");
    expect(err + out).not.toMatch(/\/var\/lib\/accel-agent\//);
    expect(out).toMatch(/state_dir +.*\/var\/lib\/accel-agent-shop/);
  },
);
