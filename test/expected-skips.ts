// The tests that CI may skip, each with its reason and with whether that holds on the host. Any other skip fails the run (`support/run-verdict.ts`).
//
// What is not here and may be skipped elsewhere CI has installed: a file with such tests says by `provided` what it needs (`tidy.test.ts`).

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { localAddresses } from "../src/agent/accelerator/origin/origin-connector.ts";
import type { ExpectedSkip } from "./support/run-verdict.ts";

const beside = (path: string) => ({
  reason: `${path} lies beside the repository, is no part of it, and cannot be fetched`,
  holds: () => !existsSync(join(import.meta.dirname, "../..", path)),
});
const forbidden = (what: string, ...command: readonly string[]) => ({
  reason: `this host forbids ${what}`,
  holds: () => spawnSync("unshare", [...command, "true"]).status !== 0,
});
const accessLog = beside("shared/data/logs/semicomplete_apache_combined_10k.log");
const mounts = forbidden("mounts", "--mount");

/** What `.ci/run` brings, so that there none of these skips. */
export const provided: Readonly<Record<string, string>> = {
  "test/agent/accelerator/upgrades/browser.test.ts": "chromium",
  "test/agent/accelerator/doors/proxies.test.ts": "HAProxy, nginx with its stream module, openssl",
  "test/agent/accelerator/doors/secure-real.test.ts": "curl, HAProxy, nghttp2-client",
  "test/agent/accelerator/lane/second-parser.test.ts": "nginx",
  "test/agent/admin/admin-server.test.ts": "promtool",
  "test/agent/admin/node-collectors.test.ts": "Linux, promtool",
  "test/base/closed-settings.test.ts": "root",
  "test/agent/admin/start-watch.test.ts": "root",
  "test/agent/admin/status-page-browser.test.ts": "chromium",
  "test/agent/link/central-client.test.ts": "openssl",
  "test/agent/requests/spool/spool-files.test.ts": "strace",
  "test/base/durable-sync.test.ts": "strace",
  "test/central/api/vault.test.ts": "nothing: it skips where postgres-api.test.ts imports it",
  "test/central/migrate.test.ts": "PostgreSQL",
  "test/central/proxy-config.test.ts": "HAProxy, nginx",
  "test/central/agents/postgres-logs/two-writers.test.ts": "PostgreSQL",
  "test/central/log-engine-kill.test.ts": "PostgreSQL",
  "test/central/postgres-commands.test.ts": "PostgreSQL",
  "test/central/postgres-log-answers.test.ts": "PostgreSQL",
  "test/central/postgres-logs-away.test.ts": "PostgreSQL",
  "test/central/postgres-logs.test.ts": "PostgreSQL",
  "test/central/cluster/membership.test.ts": "PostgreSQL",
  "test/central/others.test.ts": "PostgreSQL",
  "test/central/store/engine/postgres-notices.test.ts": "PostgreSQL",
  "test/central/store/engine/postgres-line.test.ts": "PostgreSQL",
  "test/central/store/engine/postgres-pool.test.ts": "PostgreSQL",
  "test/central/store/engine/postgres-store.test.ts": "PostgreSQL",
  "test/central/store/engine/silent-sessions.test.ts": "PostgreSQL",
  "test/central/store/engine/postgres-transactions.test.ts": "PostgreSQL",
  "test/central/store/engine/postgres-witness.test.ts": "PostgreSQL",
  "test/central/failover.test.ts": "PostgreSQL",
  "test/central/store/fan-out.test.ts": "PostgreSQL",
  "test/central/store/journal/instances-seen.test.ts": "PostgreSQL",
  "test/central/store/postgres-races.test.ts": "PostgreSQL",
  "test/central/store/postgres-newer.test.ts": "PostgreSQL",
  "test/central/store/postgres-two.test.ts": "PostgreSQL",
  "test/system/log-engine-away.test.ts": "PostgreSQL",
  "test/system/postgres-logs-failover.test.ts": "PostgreSQL",
  "test/system/several-answers.test.ts": "PostgreSQL",
  "test/central/agents/postgres-logs/kept-numbers.test.ts": "PostgreSQL",
  "test/central/agents/postgres-logs/log-schema.test.ts": "PostgreSQL",
  "test/system/postgres-failover.test.ts": "PostgreSQL",
  "test/system/store-levels.test.ts": "PostgreSQL",
  "test/system/postgres-store.test.ts": "PostgreSQL",
  "test/system/lone-central.test.ts": "PostgreSQL, HAProxy",
  "test/system/silent-central.test.ts": "PostgreSQL",
  "test/system/several-centrals.test.ts": "PostgreSQL, HAProxy",
  "test/system/many-agents.test.ts": "PostgreSQL, HAProxy",
  "test/system/several-proxies.test.ts": "PostgreSQL, HAProxy, nginx",
  "test/cli/completion.test.ts": "tmux, zsh, fish",
  "test/cli/man.test.ts": "man",
  "test/cli/wrong-node.test.ts": "Node 18, 20 and 22 in var/old-nodes",
  "test/conformance/cache-tests.test.ts": "var/cache-tests",
  "test/monitoring.test.ts": "promtool",
  "test/system/activation-power.test.ts": "strace",
  "test/system/certificate-orders.test.ts": "pebble",
  "test/system/console.test.ts": "chromium",
  "test/system/console-attacks.test.ts": "chromium",
  "test/system/console-central-away.test.ts": "chromium",
  "test/system/console-customer.test.ts": "chromium",
  "test/system/console-images.test.ts": "chromium",
  "test/system/console-orders.test.ts": "chromium",
  "test/system/booted-faults.test.ts": "debootstrap, systemd-nspawn, binutils",
  "test/system/edge.test.ts": "Prometheus",
  "test/system/log-oracle-commits.test.ts": "strace",
  "test/system/log-oracle-full.test.ts": "strace",
  "test/system/log-oracle.test.ts": "strace",
  "test/system/metrics-conf.test.ts": "Prometheus",
  "test/system/rollout-booted.test.ts": "debootstrap, systemd-nspawn, binutils, gpg",
  "test/system/packages.test.ts": "debootstrap, systemd-nspawn, binutils, gpg",
  "test/system/units.test.ts": "systemd-analyze, strace",
  "test/system/wordpress.test.ts": "WordPress, MariaDB, PHP-FPM, nginx",
  "test/systemd.test.ts": "systemd-analyze",
};

export const expectedSkips: readonly ExpectedSkip[] = [
  {
    file: "test/agent/accelerator/origin/origin-connector.test.ts",
    test: "where the host's addresses cannot be listed, as in a sandbox without netlink > an address of this host is known by the connection",
    reason: "this host has no address but the loopback's",
    holds: () =>
      Object.values(networkInterfaces()).every((list) =>
        list?.every(({ internal, address }) => internal || address.startsWith("fe80:")),
      ),
  },
  { file: "test/agent/bots/unreviewed/bot-names.test.ts", test: "", ...beside("shared/data/ua") },
  {
    file: "test/agent/accelerator/lane/second-parser.test.ts",
    test: "heads of attacks: neither reads any otherwise",
    ...beside("shared/data/hostile"),
  },
  { file: "test/agent/bots/decisions/real-lists.test.ts", test: "", ...beside("shared/data") },
  {
    file: "test/agent/accelerator/origin/origin-connector.test.ts",
    test: "where the host's addresses cannot be listed, as in a sandbox without netlink > an address of this host",
    reason: "this host has no address beside the loopback's",
    holds: () => localAddresses().every((one) => /^(?:127\.|::1$|fe80:)/.test(one)),
  },
  {
    file: "test/agent/bots/unreviewed/user-agents.test.ts",
    test: "recall and false positives on published agents",
    ...beside("shared/data/ua"),
  },
  {
    file: "test/agent/bots/unreviewed/user-agents.test.ts",
    test: "the crawler found is the one that trying every pattern finds",
    ...beside("shared/data/ua"),
  },
  {
    file: "test/agent/viewset/few-watches.test.ts",
    test: "a site with more directories than watches is polled",
    ...forbidden("user namespaces", "-Ur"),
  },
  {
    file: "test/central/api/rows.test.ts",
    test: "the list of its lines is that of the specification beside this tree",
    ...beside("shared/seed/customer-api.md"),
  },
  { file: "test/central/backup/disk.test.ts", test: "a disk that is full > ", ...mounts },
  { file: "test/central/log-crash.test.ts", test: "on a full disk batches are refused", ...mounts },
  {
    file: "test/central/log-crash.test.ts",
    test: "on a disk that is full at the start",
    ...mounts,
  },
  {
    file: "test/central/store/postgres-api.test.ts",
    test: "on PostgreSQL > vault > a private key is in no answer",
    reason: "it reads the SQLite file, and runs on that in test/central/api/vault.test.ts",
    holds: () => true,
  },
  {
    file: "test/core/patterns/pattern-recipes.test.ts",
    test: "the exact URL of every real path clears it and no other",
    ...beside("shared/data/paths"),
  },
  { file: "test/system/cache-damage.test.ts", test: "a disk that refuses", ...mounts },
  {
    file: "test/system/booted-faults.test.ts",
    test: "a memory limit ends the whole agent",
    reason: "this host has no control groups of version 2, so systemd in it sets no limits",
    holds: () => !existsSync("/sys/fs/cgroup/cgroup.controllers"),
  },
  { file: "test/system/demo-refused.test.ts", test: "--state on a disk", ...mounts },
  { file: "test/system/demo-refused.test.ts", test: "--state on a disk", ...mounts },
  { file: "test/system/full-disk.test.ts", test: "", ...mounts },
  { file: "test/agent/link/agent-db-full-disk.test.ts", test: "", ...mounts },
  { file: "test/agent/link/site-secret-disk.test.ts", test: "", ...mounts },
  {
    file: "test/agent/viewset/disk-max.test.ts",
    test: "a version that the disk has no room",
    ...mounts,
  },
  { file: "test/central/store/engine/database.test.ts", test: "a full disk is named", ...mounts },
  { file: "test/agent/tables.test.ts", test: "on a disk without a free byte", ...mounts },
  { file: "test/agent/doctor/full-disk.test.ts", test: "", ...mounts },
  { file: "test/agent/closed-directory.test.ts", test: "", ...mounts },
  { file: "test/cli/ports-only.test.ts", test: "", ...mounts },
  { file: "test/agent/instance-advice.test.ts", test: "", ...mounts },
  { file: "test/system/doctor.test.ts", test: "diagnostics on a full disk", ...mounts },
  {
    file: "test/agent/requests/spool/spool-files.test.ts",
    test: "a directory that was made wide takes names on a full disk",
    ...mounts,
  },
  { file: "test/system/demo.test.ts", test: "10,000 real requests replayed", ...accessLog },
  {
    file: "test/system/log-oracle-replay.test.ts",
    test: "a real log arrives line for line",
    ...accessLog,
  },
  {
    file: "test/system/outside.test.ts",
    test: "statuses, metrics, receipts and logs say what was sent",
    ...accessLog,
  },
];
