// An instance of the agent that was killed: what its next process advises is about the instance, and not about the plain agent beside it.

import { expect, test } from "vitest";
import { withOwnEtc } from "../support/own-etc.ts";
import { canMountDisks } from "../support/small-disk.ts";

const settings = [
  "central_url: http://127.0.0.1:1",
  "name16: 0123456789abcdef",
  "secret16_file: /run/credentials/accel-agent@shop.service/secret16",
  "state_dir: /etc/state",
  "accelerator: { listen: 127.0.0.1:0, workers: 1 }",
  "metrics: { listen: 127.0.0.1:0 }",
].join("\n");

test.skipIf(!canMountDisks)(
  "the warning of the end names the instance's unit, and commands about the instance (needs unshare --mount)",
  () => {
    const { out, err } = withOwnEtc(
      "mkdir -p /etc/accel-agent/shop",
      // What systemd shows to the unit, and the file from which it takes that.
      "mount -t tmpfs none /run; mkdir -p /run/credentials/accel-agent@shop.service; umask 022",
      `printf %s '${"f".repeat(32)}' | tee /run/credentials/accel-agent@shop.service/secret16 > /etc/accel-agent/shop/secret16`,
      `printf %s '${settings}' > /etc/accel-agent/shop/agent.yaml`,
      'start() { "$@" run --instance shop >/dev/null 2>&1 & pid=$!; }',
      'answers() { for try in $(seq 30); do "$@" status --json --instance shop 2>/dev/null && return; done; }',
      "trap 'kill -KILL $pid' EXIT",
      'start "$@"; answers "$@" >/dev/null; kill -KILL $pid; wait $pid || :',
      'start "$@"; answers "$@"',
    );
    expect(err).not.toContain("accel-agent:");
    const { warnings } = JSON.parse(out) as { warnings: { code: string; hint: string }[] };
    const hintOf = (code: string) => warnings.find((warning) => warning.code === code)?.hint;
    expect(hintOf("secret_exposed")).toMatch(
      /^As root: chmod 600 \/etc\/accel-agent\/shop\/secret16;/,
    );
    expect(hintOf("unclean_end")).toBe(
      "`journalctl -u accel-agent@shop` around that time says what it met, and `accel-agent diagnostics --instance shop` collects what a report needs. `accel-agent logs backlog --instance shop` says how many request records it may have cost.",
    );
  },
  180_000,
);
