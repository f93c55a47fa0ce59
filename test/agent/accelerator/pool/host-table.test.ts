// Which host an authority names, and what is served under it.

import { describe, expect, it } from "vitest";
import { BlobBodies } from "../../../../src/agent/accelerator/files/bodies.ts";
import { HostTable } from "../../../../src/agent/accelerator/pool/host-table.ts";
import { effectiveDevlove } from "../../../../src/core/serving/effective-devlove.ts";
import type {
  HostBots,
  ServedHost,
  ServingState,
} from "../../../../src/core/serving/serving-state.ts";

const bots: HostBots = {
  mode: "enforce",
  unknownBotsCanAccess: null,
  allow: new Set(),
  deny: new Set(),
  vip: [],
  bad: [],
};
const main = "example.com";

function hostOf(name: string, isActive: boolean): ServedHost {
  const sub = { name, share_views_and_views_dir_with_main_domain: true };
  const site = effectiveDevlove({ domains: {} }, main, name === main ? null : sub);
  return { name, site: isActive ? site : null, views: { kind: "none" }, bots };
}

const state: ServingState = {
  version: 3,
  domains: [
    { name: main, manifest: null, hosts: [hostOf(main, true), hostOf("static.example.com", true)] },
    { name: "other.org", manifest: null, hosts: [hostOf("other.org", false)] },
  ],
};

function routed(authority: string, defaultDomain: string | null = null): string {
  const table = new HostTable(state, {
    defaultDomain,
    bodies: new BlobBodies({ blobsDir: "/x", memoryMax: 0 }),
    nowMs: () => 0,
  });
  const found = table.route(authority);
  if (found.kind !== "served") return found.kind;
  const { domain, host, compiled } = found;
  return `${domain} ${host.name} ${compiled?.site.host ?? "inactive"}`;
}

describe("routing", () => {
  it.each([
    ["example.com", "example.com example.com example.com"],
    ["EXAMPLE.com.:8080", "example.com example.com example.com"],
    ["static.example.com", "example.com static.example.com static.example.com"],
    ["other.org", "other.org other.org inactive"],
    ["www.example.com", "unknown"],
    ["example.com.evil.org", "unknown"],
    ["127.0.0.1", "unknown"],
    ["", "unknown"],
    ["a@example.com", "malformed"],
    ["example.com/x", "malformed"],
    ["example.com:99999999", "malformed"],
  ])("%j: %s", (authority, expected) => {
    expect(routed(authority)).toBe(expected);
  });

  it.each(["127.0.0.1", "10.0.0.1:80", "[::1]:8080", "localhost", "LOCALHOST:80", ""])(
    "%j is answered by the default domain",
    (authority) => {
      const wanted = "example.com static.example.com static.example.com";
      expect(routed(authority, "static.example.com")).toBe(wanted);
      expect(routed("unknown.org", "static.example.com")).toBe("unknown");
    },
  );
});
