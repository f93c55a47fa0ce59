// An agent's status for tests: ready, with one domain, unless said otherwise.

import type { AgentStatus } from "../../../src/agent/admin/status.ts";

export function statusOf(more: Partial<AgentStatus>): AgentStatus {
  return {
    program: "accel-agent",
    version: "1.2.3",
    name16: "0123456789abcdef",
    started: "2026-01-01T00:00:00.000Z",
    ready: true,
    serving: {
      state_version: 7,
      workers: 2,
      listen: "0.0.0.0:80",
      tls_listen: null,
      domains: [
        {
          domain: "a.example",
          hosts: ["a.example", "sub.a.example"],
          viewset: "a".repeat(64),
          version: {
            viewset_name: "spring",
            viewset_id: 7,
            since: "2026-01-01T00:00:00.000Z",
            standing: "in force",
            on_trial_until: null,
          },
          files: 12,
          bots: { mode: "enforce", unknown_bots: "blocked by default" },
        },
      ],
    },
    parts: { link: { state: "connected", lag: 0 } },
    warnings: [],
    ...more,
  };
}
