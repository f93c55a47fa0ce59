// Checks whether central may roll releases over this host, and whether they would arrive.

import { unitNameOf } from "../../base/instance.ts";
import { packageStatus } from "../../core/rollout/package-status.ts";
import { unreadText } from "../../base/unread-unit.ts";
import type { AgentSettings } from "../settings/fields.ts";
import { findingsOf, type Finding, type Host } from "./finding.ts";

const { ok, warning, skipped } = findingsOf("rollouts");

/** What names the packages' repository; the installer takes the first that is there. */
const sources = ["sources", "list"].map((end) => `/etc/apt/sources.list.d/accel-agent.${end}`);
const badEnds: ReadonlySet<string> = new Set(["refused", "failed", "returned"]);

export async function checkRollouts(settings: AgentSettings, host: Host): Promise<Finding> {
  const unit = await host.unit();
  const installer = host.installer(settings.state_dir);
  if (installer === undefined || unit === undefined)
    return skipped("rollouts reach the first agent of the packages only");
  const unread = unreadText(unit, unitNameOf(host.place));
  if (unread !== undefined)
    return skipped(`rollouts reach an agent that runs by its unit, and ${unread}`);
  const takes = installer.takes();
  if (takes === "off")
    return skipped(
      "central may not install releases here; systemctl enable --now accel-agent-rollout.path lets it",
    );
  const packages = host.read("/var/lib/dpkg/status") ?? "";
  if (packageStatus(packages, "accel-central").endsWith(" installed"))
    return warning(
      "central may install releases, and cannot: this host has accel-central as well, and a rollout changes no other package",
      "Update both by apt, or move central to a host of its own.",
    );
  if (!sources.some((path) => host.read(path) !== undefined))
    return warning(
      "central may install releases, and this host does not name their repository",
      `Name it in ${sources.join(" or ")}.`,
    );
  if (takes === "held")
    return ok("the packages are held: this host stays as it is, whatever central wants");
  const last = installer.outcome();
  if (last !== undefined && badEnds.has(last.state))
    return warning(
      `central may install releases; the last one was ${last.state}: ${last.reason}`,
      "journalctl -u accel-agent-rollout has apt's own words.",
    );
  return ok("central may install releases");
}
