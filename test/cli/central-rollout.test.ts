// `accel-central rollout status` for a person: hosts have the names that `accel-central status` gives them.

import { expect, test } from "vitest";
import { rolloutStatusText } from "../../src/cli/central-rollout.ts";

const instance = "3f0c2a9d5b7e41c83f0c2a9d5b7e41c8";

test.each([
  ["edge-1", "srv-7", "7/edge-1, srv-7"],
  ["edge-1", "edge-1", "7/edge-1"],
  [null, "srv-7", "7/srv-7"],
  [null, null, "7/3f0c2a9d"],
])("a host that its settings call %s and that calls itself %s", (server, own, shown) => {
  const host = { deployment_site_id: 7, instance_id: instance, server_name: server };
  const text = rolloutStatusText({ state: "running" }, [
    { ...host, host_name: own, had: "0.1.0", state: "waiting" },
  ]);
  expect(text).toContain(`\n${shown}  0.1.0`);
  expect(text).not.toContain(instance);
});
