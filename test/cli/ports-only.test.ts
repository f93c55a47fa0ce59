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
